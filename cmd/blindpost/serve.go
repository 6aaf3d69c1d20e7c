package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"syscall"
	"time"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/metrics"
	"blindpost/shared/relay"
	"blindpost/shared/standalone"
)

// shutdownGrace is how long handlers and connections get to end after the spread
// of a shutdown.
const shutdownGrace = 20 * time.Second

// runServe runs the relay until ctx ends.
func runServe(ctx context.Context, e env, args []string) int {
	settings, err := ParseSettings(args, e.stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(e.stderr, "blindpost: %v\n", err)
		return 2
	}
	log := newLog(e.stderr, settings.Log)
	run := serve
	if settings.Lambda.URL != "" {
		run = serveLambda
	}
	if err := run(ctx, settings, args, log); err != nil {
		log.Error("stopped", "error", err)
		return 1
	}
	return 0
}

func newLog(w io.Writer, s LogSettings) *slog.Logger {
	o := &slog.HandlerOptions{Level: s.Level}
	if s.Format == "text" {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

func serve(ctx context.Context, s Settings, args []string, log *slog.Logger) error {
	build := buildInfo()
	m := metrics.New(metrics.Options{Version: build.Version, Revision: build.Revision, Dialects: dialects(s), Log: log})
	listener, err := net.Listen("tcp", s.Listen) // before anything is made in the data folder
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	cfg, err := nodeConfig(s, m, log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	node, err := standalone.Open(cfg)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	stopMetrics, err := serveMetrics(s, m, log)
	if err != nil {
		return errors.Join(err, listener.Close(), node.Shutdown(ctx, 0))
	}
	defer stopMetrics()

	reloader := NewReloader(s, func() (Settings, error) { return ParseSettings(args, io.Discard) },
		func(l Limits) { node.SetLimits(nodeLimits(l)) }, log)
	reloader.Also(cfg.Aelos.Reread)
	stopReload := reloadOnHangup(reloader)
	defer stopReload()

	go keepMemoryLow(ctx)
	served := make(chan error, 1)
	go func() { served <- node.Serve(ctx, listener) }()
	log.Info("serving", "address", listener.Addr().String(), "version", build.Version,
		"url", publicURL(s, listener.Addr()), "data", s.DataDir)

	select {
	case err = <-served: // the listener broke
	case <-node.Failed():
		err = errors.New("the database failed: start again, see the errors before")
	case <-ctx.Done():
	}
	return errors.Join(err, shutDown(ctx, node.Shutdown, s.ShutdownSpread, shutdownGrace, log))
}

// shutDown ends what serves, whose closes it spreads; grace is how long that may
// take beyond. What has ended us has ended ctx as well: this has time of its own.
func shutDown(ctx context.Context, stop func(context.Context, time.Duration) error, spread, grace time.Duration, log *slog.Logger) error {
	log.Info("shutting down", "spread", spread.String())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spread+grace)
	defer cancel()
	if err := stop(ctx, spread); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// serverTLS is what the settings want of TLS, with the name of this machine.
func serverTLS(s Settings, log *slog.Logger) (*tls.Config, error) {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "localhost"
	}
	return NewTLS(s, hostname, time.Now, log)
}

// nodeConfig turns settings into what standalone runs.
func nodeConfig(s Settings, m *metrics.Metrics, log *slog.Logger) (standalone.Config, error) {
	tlsConfig, err := serverTLS(s, log)
	if err != nil {
		return standalone.Config{}, err
	}
	speakAelos, err := nodeAelos(s.Aelos, log)
	if err != nil {
		return standalone.Config{}, err
	}
	attestation, err := nodeAttestation(s.Agentknock)
	if err != nil {
		return standalone.Config{}, err
	}
	return standalone.Config{
		Attestation:    attestation,
		Aelos:          speakAelos,
		DataDir:        s.DataDir,
		Limits:         nodeLimits(s.Limits),
		PushText:       s.Push,
		TLS:            tlsConfig,
		TrustedProxies: s.BehindProxy,
		MaxConns:       int(s.Transport.MaxConnections),
		SendBuffer:     int(s.Transport.SendBuffer),
		WriteTimeout:   s.Transport.WriteTimeout,
		PingEvery:      s.Transport.PingInterval,
		IdleAfter:      s.Transport.IdleTimeout,
		Log:            log,
		Metrics:        m,
	}, nil
}

func nodeLimits(l Limits) standalone.Limits {
	return standalone.Limits{
		Relay: relay.Limits{
			MailboxCap:        l.MailboxCap,
			MessageTTL:        l.MessageTTL,
			ConnectionsPerIP:  l.ConnectionsPerIP,
			MessagesPerMinute: l.MessagesPerMinute,
			ControlPerMinute:  l.ControlFramesPerMinute,
		},
		Skald: skald.Limits{
			MaxFrame:         l.MaxFrame,
			MaxLiveFrame:     l.MaxLiveFrame,
			ChallengeTimeout: l.ChallengeTimeout,
			NamespaceTTL:     l.NamespaceTTL,
			PairingTTL:       l.PairingTTL,
			PairingTTLMax:    l.PairingTTLMax,
		},
		Agentknock: l.Agentknock,
		Aelos:      l.Aelos,
	}
}

// dialects are the protocols that a relay with these settings speaks.
func dialects(s Settings) []string {
	names := []string{"skald", "agentknock"}
	if s.Aelos.SecretFile != "" {
		names = append(names, "aelos")
	}
	return names
}

// publicURL is where a client on this machine finds the relay.
func publicURL(s Settings, a net.Addr) string {
	scheme := "wss"
	if s.TLSSource() == NoTLS {
		scheme = "ws"
	}
	host := "localhost"
	if len(s.TLS.ACMEDomains) > 0 {
		host = s.TLS.ACMEDomains[0]
	}
	_, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return scheme + "://" + a.String() + skald.Path
	}
	return scheme + "://" + net.JoinHostPort(host, port) + skald.Path
}

// serveMetrics answers Prometheus on a listener of its own.
func serveMetrics(s Settings, m *metrics.Metrics, log *slog.Logger) (stop func(), err error) {
	if s.MetricsListen == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", s.MetricsListen)
	if err != nil {
		return nil, fmt.Errorf("failed to listen for metrics (--metrics-listen): %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	if s.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics stopped", "error", err)
		}
	}()
	log.Info("serving metrics", "address", l.Addr().String())
	return func() { _ = srv.Close() }, nil
}

// reloadOnHangup reads the settings again on SIGHUP.
func reloadOnHangup(r *Reloader) (stop func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-hup:
				r.Reload()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(hup)
		close(done)
	}
}

func runVersion(_ context.Context, e env, _ []string) int {
	fmt.Fprintln(e.stdout, "blindpost", buildInfo())
	return 0
}
