package main

import (
	"cmp"
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
	"blindpost/shared/settings"
	"blindpost/shared/settings/secret"
)

// serveLambda runs the WebSocket front of the AWS functions until ctx ends.
func serveLambda(ctx context.Context, v settings.Values, args []string, log *slog.Logger) error {
	build := buildInfo()
	m := metrics.New(metrics.Options{Version: build.Version, Revision: build.Revision, Log: log})
	listener, err := net.Listen("tcp", settings.Listen.Of(v))
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	callbacks, err := net.Listen("tcp", settings.CallbackListen.Of(v))
	if err != nil {
		return errors.Join(fmt.Errorf("failed to listen for callbacks (callback-listen): %w", err), listener.Close())
	}
	front, err := newLambdaFront(ctx, v, m, log)
	if err == nil {
		callbacks, err = callbackTLS(v, callbacks, log)
	}
	if err != nil {
		return errors.Join(err, listener.Close(), callbacks.Close())
	}
	stopMetrics, err := serveMetrics(v, m, log)
	if err != nil {
		return errors.Join(err, listener.Close(), callbacks.Close())
	}
	defer stopMetrics()
	stopReload := reloadOnHangup(NewReloader(v, func() (settings.Values, error) { return ParseSettings(args, io.Discard) },
		func(settings.Values) {
			log.Warn("the limits of this front need a restart, the others are those of the functions")
		}, log))
	defer stopReload()

	go keepMemoryLow(ctx)
	served := make(chan error, 1)
	go func() { served <- front.Serve(ctx, listener, callbacks) }()
	log.Info("serving", "address", listener.Addr().String(), "version", build.Version, "url", publicURL(v, listener.Addr()),
		"lambda", settings.Lambda.Of(v), "frames", cmp.Or(settings.LambdaIngress.Of(v), "function "+settings.LambdaMessage.Of(v)), "callbacks", callbacks.Addr().String(), "callback_url", callbackURL(v))

	select {
	case err = <-served: // a listener broke
	case <-ctx.Done():
	}
	grace := shutdownGrace + settings.LambdaTimeout.Of(v) // the functions are told of each connection
	return errors.Join(err, shutDown(ctx, front.Shutdown, settings.ShutdownSpread.Of(v), grace, log))
}

func newLambdaFront(ctx context.Context, v settings.Values, m *metrics.Metrics, log *slog.Logger) (*invoke.Front, error) {
	clients := invoke.Clients{Region: settings.LambdaRegion.Of(v)}
	api, err := clients.Lambda(ctx, settings.Lambda.Of(v))
	if err != nil {
		return nil, err
	}
	shared, err := callbackSecret(ctx, v, clients, log)
	if err != nil {
		return nil, err
	}
	so, err := lambdaServer(v, m, log)
	if err != nil {
		return nil, err
	}
	functions := invoke.Functions{
		Connect: settings.LambdaConnect.Of(v), Message: settings.LambdaMessage.Of(v), Disconnect: settings.LambdaDisconnect.Of(v),
	}
	o := invoke.Options{
		Server: so, Lambda: api, Functions: functions, PathParameter: settings.LambdaPathParameter.Of(v), Timeout: settings.LambdaTimeout.Of(v),
		Callback: callbackURL(v), Check: shared.Check, Log: log, Observer: m.Invoke(),
	}
	if ingress := settings.LambdaIngress.Of(v); ingress != "" {
		queue, err := clients.SQS(ctx, ingress)
		if err != nil {
			return nil, err
		}
		o.Ingress, o.IngressURL = queue, ingress
	}
	return invoke.New(o)
}

func lambdaServer(v settings.Values, m *metrics.Metrics, log *slog.Logger) (server.Options, error) {
	tlsConfig, err := serverTLS(v, log)
	if err != nil {
		return server.Options{}, err
	}
	return server.Options{
		TLS: tlsConfig, TrustedProxies: settings.BehindProxy.Of(v),
		MaxConns: int(settings.MaxConnections.Of(v)), MaxBuffered: int(settings.SendBuffer.Of(v)),
		ReadLimit:    max(settings.MaxFrame.Of(v), settings.MaxLiveFrame.Of(v)),
		WriteTimeout: settings.WriteTimeout.Of(v), PingEvery: settings.PingInterval.Of(v), IdleAfter: settings.IdleTimeout.Of(v),
		Logger: log, Observer: m.Front(""),
	}, nil
}

// callbackSecret reads the secret at once, so that a wrong secret is an error at start.
func callbackSecret(ctx context.Context, v settings.Values, clients invoke.Clients, log *slog.Logger) (*secret.Rotating, error) {
	o, place := secret.Options{Long: true, Log: log}, settings.CallbackSecretFile
	if arn := settings.CallbackSecretARN.Of(v); arn != "" {
		place = settings.CallbackSecretARN
		var err error
		if o.Read, err = clients.Secret(ctx, arn); err != nil {
			return nil, v.Wrong(place, "%w", err)
		}
	} else {
		name, ours := callbackSecretFile(v)
		if ours {
			made, err := secret.EnsureFile(name)
			if err != nil {
				return nil, v.Wrong(settings.DataDir, "%w", err)
			}
			if made {
				log.Info("made a secret for the calls of the functions: they have to know it", "file", name)
			}
		}
		o.Read = secret.File(name)
	}
	shared := secret.New(o)
	if _, err := shared.Current(ctx); err != nil {
		return nil, v.Wrong(place, "%w", err)
	}
	return shared, nil
}

// callbackTLS puts TLS on the listener for callbacks, if it is set.
func callbackTLS(v settings.Values, l net.Listener, log *slog.Logger) (net.Listener, error) {
	if settings.CallbackTLSCert.Of(v) == "" {
		return l, nil
	}
	f, err := certFrom(v, settings.CallbackTLSCert, settings.CallbackTLSKey, log)
	if err != nil {
		return l, err
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: f.GetCertificate,
	}), nil
}
