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

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/dialect/skald"
	"blindpost/shared/metrics"
	"blindpost/shared/push"
	"blindpost/shared/settings"
	"blindpost/shared/settings/secret"
	"blindpost/shared/standalone"
)

// shutdownGrace is how long handlers and connections get to end after the spread
// of a shutdown.
const shutdownGrace = 20 * time.Second

// runServe runs the relay until ctx ends.
func runServe(ctx context.Context, e env, args []string) int {
	v, err := ParseSettings(args, e.stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(e.stderr, "blindpost: %v\n", err)
		return 2
	}
	log := newLog(e.stderr, v)
	run := serve
	if settings.Lambda.Of(v) != "" {
		run = serveLambda
	}
	if err := run(ctx, v, args, log); err != nil {
		log.Error("stopped", "error", err)
		return 1
	}
	return 0
}

func newLog(w io.Writer, v settings.Values) *slog.Logger {
	o := &slog.HandlerOptions{Level: settings.LogLevel.Of(v)}
	if settings.LogFormat.Of(v) == "text" {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

func serve(ctx context.Context, v settings.Values, args []string, log *slog.Logger) error {
	build := buildInfo()
	m := metrics.New(metrics.Options{Version: build.Version, Revision: build.Revision, Dialects: dialects(v), Log: log})
	listener, err := net.Listen("tcp", settings.Listen.Of(v)) // before anything is made in the data folder
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	cfg, err := nodeConfig(v, m, log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	node, err := standalone.Open(cfg)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	stopMetrics, err := serveMetrics(v, m, log)
	if err != nil {
		return errors.Join(err, listener.Close(), node.Shutdown(ctx, 0))
	}
	defer stopMetrics()

	reloader := NewReloader(v, func() (settings.Values, error) { return ParseSettings(args, io.Discard) },
		func(next settings.Values) { node.SetLimits(standalone.LimitsFrom(next)) }, log)
	reloader.Also(cfg.Aelos.Reread)
	stopReload := reloadOnHangup(reloader)
	defer stopReload()

	go keepMemoryLow(ctx)
	served := make(chan error, 1)
	go func() { served <- node.Serve(ctx, listener) }()
	log.Info("serving", "address", listener.Addr().String(), "version", build.Version,
		"url", publicURL(v, listener.Addr()), "data", settings.DataDir.Of(v))

	select {
	case err = <-served: // the listener broke
	case <-node.Failed():
		err = errors.New("the database failed: start again, see the errors before")
	case <-ctx.Done():
	}
	return errors.Join(err, shutDown(ctx, node.Shutdown, settings.ShutdownSpread.Of(v), shutdownGrace, log))
}

// shutDown stops the relay, which closes its connections over the time spread, and waits
// at most grace longer. ctx may have ended already, so the shutdown has its own timeout.
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

// serverTLS is the TLS configuration for clients. A self-signed certificate names this
// machine.
func serverTLS(v settings.Values, log *slog.Logger) (*tls.Config, error) {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "localhost"
	}
	return NewTLS(v, hostname, time.Now, log)
}

// nodeConfig turns settings into what standalone runs.
func nodeConfig(v settings.Values, m *metrics.Metrics, log *slog.Logger) (standalone.Config, error) {
	tlsConfig, err := serverTLS(v, log)
	if err != nil {
		return standalone.Config{}, err
	}
	speakAelos, err := nodeAelos(v, log)
	if err != nil {
		return standalone.Config{}, err
	}
	attestation, err := agentknock.AttestationFrom(v)
	if err != nil {
		return standalone.Config{}, err
	}
	return standalone.Config{
		Attestation:    attestation,
		Aelos:          speakAelos,
		DataDir:        settings.DataDir.Of(v),
		Limits:         standalone.LimitsFrom(v),
		PushText:       push.Text{Title: settings.PushTitle.Of(v), Body: settings.PushBody.Of(v)},
		TLS:            tlsConfig,
		TrustedProxies: settings.BehindProxy.Of(v),
		MaxConns:       int(settings.MaxConnections.Of(v)),
		SendBuffer:     int(settings.SendBuffer.Of(v)),
		WriteTimeout:   settings.WriteTimeout.Of(v),
		PingEvery:      settings.PingInterval.Of(v),
		IdleAfter:      settings.IdleTimeout.Of(v),
		Log:            log,
		Metrics:        m,
	}, nil
}

// nodeAelos turns the settings into what standalone runs, and checks that there is a
// secret.
func nodeAelos(v settings.Values, log *slog.Logger) (standalone.Aelos, error) {
	file := settings.AelosSecretFile.Of(v)
	if file == "" {
		return standalone.Aelos{}, nil
	}
	secrets := secret.New(secret.Options{Read: secret.File(file), Check: aelos.CheckSecrets, Log: log})
	if _, err := secrets.All(context.Background()); err != nil {
		return standalone.Aelos{}, v.Wrong(settings.AelosSecretFile, "%w", err)
	}
	controller, err := aelos.ControllerFrom(v)
	return standalone.Aelos{Secrets: secrets.All, Path: settings.AelosPath.Of(v), Controller: controller, Reread: secrets.Reread}, err
}

// dialects are the protocols that a relay with these settings speaks.
func dialects(v settings.Values) []string {
	names := []string{"skald", "agentknock"}
	if settings.AelosSecretFile.Of(v) != "" {
		names = append(names, "aelos")
	}
	return names
}

// publicURL is where a client on this machine finds the relay.
func publicURL(v settings.Values, a net.Addr) string {
	scheme := "wss"
	if tlsSource(v) == NoTLS {
		scheme = "ws"
	}
	host := "localhost"
	if domains := settings.ACMEDomains.Of(v); len(domains) > 0 {
		host = domains[0]
	}
	_, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return scheme + "://" + a.String() + skald.Path
	}
	return scheme + "://" + net.JoinHostPort(host, port) + skald.Path
}

// serveMetrics answers Prometheus on a listener of its own.
func serveMetrics(v settings.Values, m *metrics.Metrics, log *slog.Logger) (stop func(), err error) {
	address := settings.MetricsListen.Of(v)
	if address == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("failed to listen for metrics (--metrics-listen): %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	if settings.Pprof.Of(v) {
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
