package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"blindpost/shared/gateway/remote/invoke"
	"blindpost/shared/gateway/server"
	"blindpost/shared/metrics"
	"blindpost/shared/settings/secret"
)

// serveLambda runs the WebSocket front of the AWS functions until ctx ends.
func serveLambda(ctx context.Context, s Settings, args []string, log *slog.Logger) error {
	build := buildInfo()
	m := metrics.New(metrics.Options{Version: build.Version, Revision: build.Revision, Log: log})
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	callbacks, err := net.Listen("tcp", s.Lambda.CallbackListen)
	if err != nil {
		return errors.Join(fmt.Errorf("failed to listen for callbacks (callback-listen): %w", err), listener.Close())
	}
	front, err := newLambdaFront(ctx, s, m, log)
	if err == nil {
		callbacks, err = callbackTLS(s, callbacks, log)
	}
	if err != nil {
		return errors.Join(err, listener.Close(), callbacks.Close())
	}
	stopMetrics, err := serveMetrics(s, m, log)
	if err != nil {
		return errors.Join(err, listener.Close(), callbacks.Close())
	}
	defer stopMetrics()
	stopReload := reloadOnHangup(NewReloader(s, func() (Settings, error) { return ParseSettings(args, io.Discard) },
		func(Limits) {
			log.Warn("the limits of this front need a restart, the others are those of the functions")
		}, log))
	defer stopReload()

	go keepMemoryLow(ctx)
	served := make(chan error, 1)
	go func() { served <- front.Serve(ctx, listener, callbacks) }()
	log.Info("serving", "address", listener.Addr().String(), "version", build.Version, "url", publicURL(s, listener.Addr()),
		"lambda", s.Lambda.URL, "frames", s.queueOrFunction(), "callbacks", callbacks.Addr().String(), "callback_url", s.callbackURL())

	select {
	case err = <-served: // a listener broke
	case <-ctx.Done():
	}
	grace := shutdownGrace + s.Lambda.Timeout // the functions are told of each connection
	return errors.Join(err, shutDown(ctx, front.Shutdown, s.ShutdownSpread, grace, log))
}

func newLambdaFront(ctx context.Context, s Settings, m *metrics.Metrics, log *slog.Logger) (*invoke.Front, error) {
	clients := invoke.Clients{Region: s.Lambda.Region}
	api, err := clients.Lambda(ctx, s.Lambda.URL)
	if err != nil {
		return nil, err
	}
	words, err := callbackSecret(ctx, s, clients, log)
	if err != nil {
		return nil, err
	}
	so, err := lambdaServer(s, m, log)
	if err != nil {
		return nil, err
	}
	o := invoke.Options{
		Server: so, Lambda: api, Functions: s.Lambda.Functions, PathParameter: s.Lambda.PathParam, Timeout: s.Lambda.Timeout,
		Callback: s.callbackURL(), Check: words.Check, Log: log, Observer: m.Invoke(),
	}
	if s.Lambda.Ingress != "" {
		queue, err := clients.SQS(ctx, s.Lambda.Ingress)
		if err != nil {
			return nil, err
		}
		o.Ingress, o.IngressURL = queue, s.Lambda.Ingress
	}
	return invoke.New(o)
}

func lambdaServer(s Settings, m *metrics.Metrics, log *slog.Logger) (server.Options, error) {
	tlsConfig, err := serverTLS(s, log)
	if err != nil {
		return server.Options{}, err
	}
	return server.Options{
		TLS: tlsConfig, TrustedProxies: s.BehindProxy,
		MaxConns: int(s.Transport.MaxConnections), MaxBuffered: int(s.Transport.SendBuffer),
		ReadLimit:    max(s.Limits.MaxFrame, s.Limits.MaxLiveFrame),
		WriteTimeout: s.Transport.WriteTimeout, PingEvery: s.Transport.PingInterval, IdleAfter: s.Transport.IdleTimeout,
		Logger: log, Observer: m.Front(""),
	}, nil
}

// callbackSecret reads the secret at once, so that what is wrong with it is an error at
// start.
func callbackSecret(ctx context.Context, s Settings, clients invoke.Clients, log *slog.Logger) (*secret.Words, error) {
	o := secret.Options{Long: true, Log: log}
	if arn := s.Lambda.CallbackSecretARN; arn != "" {
		var err error
		if o.Read, err = clients.Secret(ctx, arn); err != nil {
			return nil, complaint("callback-secret-arn", "%w", err)
		}
	} else {
		name, ours := s.callbackSecretFile()
		if ours {
			made, err := secret.EnsureFile(name)
			if err != nil {
				return nil, err
			}
			if made {
				log.Info("made a secret for the calls of the functions: they have to know it", "file", name)
			}
		}
		o.Read = secret.File(name)
	}
	words := secret.New(o)
	if _, err := words.Word(ctx); err != nil {
		return nil, fmt.Errorf("failed to read the secret for the calls of the functions: %w", err)
	}
	return words, nil
}

// callbackTLS puts TLS on the listener for callbacks, if it is set.
func callbackTLS(s Settings, l net.Listener, log *slog.Logger) (net.Listener, error) {
	if s.Lambda.CallbackCert == "" {
		return l, nil
	}
	f, err := newFileCert(s.Lambda.CallbackCert, s.Lambda.CallbackKey, log)
	if err != nil {
		return l, err
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: f.GetCertificate,
	}), nil
}
