package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/settings"
)

// Options are the settings of a [Server]. Zero values are the defaults, some of which
// are those of blindpost/shared/settings.
type Options struct {
	// NewConn makes the id of a new connection. It must never repeat itself, not
	// even after a restart. Required.
	NewConn func() gateway.Conn

	// TLS, if set, ends TLS here. Without it the server speaks plain HTTP and
	// serves only what a trusted proxy forwards.
	TLS *tls.Config
	// TrustedProxies are the addresses of proxies in front of the server. Only
	// from these are X-Forwarded-For and X-Forwarded-Proto believed.
	TrustedProxies []netip.Prefix

	// IsWebSocketPath reports whether a path is for WebSocket: the server answers a
	// plain GET on it with 426 Upgrade Required. It does not restrict upgrades: the
	// handler decides in Connect about an upgrade on any path.
	IsWebSocketPath func(path string) bool
	// HTTP serves requests that are neither upgrades nor health checks; default
	// 404. Its requests carry the client's address, see [RemoteIP].
	HTTP http.Handler
	// Ready makes /readyz fail by returning an error. The error is logged, not
	// shown.
	Ready func(ctx context.Context) error

	// MaxConns caps the open connections; 0 is no cap.
	MaxConns int
	// ReadLimit is the read limit in bytes of a connection whose handler sets
	// none; default that of max-frame.
	ReadLimit int64
	// MaxBuffered bounds the bytes that wait to be written to one connection;
	// default that of send-buffer. It is also the limit of one message.
	MaxBuffered int
	// WriteTimeout is how long a peer may take to read any 64 KiB of what is
	// sent to it; default that of write-timeout. HandshakeTimeout is for the TLS
	// handshake and for the request header, each; default 10 s.
	WriteTimeout     time.Duration
	HandshakeTimeout time.Duration
	// PingEvery is the time between two keep-alive pings; default that of
	// ping-interval.
	PingEvery time.Duration
	// IdleAfter is the silence after which a connection is closed; default that of
	// idle-timeout.
	IdleAfter time.Duration
	// CloseWait bounds, each by itself, the flush before a close frame and the
	// wait for the peer's answer; default 5 s.
	CloseWait time.Duration

	// Rand spreads the closes of a shutdown; it returns a number in [0, 1).
	// Default is math/rand/v2.
	Rand func() float64
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Observer defaults to [NopObserver].
	Observer Observer
}

func (o Options) withDefaults() (Options, error) {
	if o.NewConn == nil {
		return o, errors.New("failed to set up the WebSocket front: Options.NewConn is required")
	}
	for _, v := range []int64{
		int64(o.MaxConns), o.ReadLimit, int64(o.MaxBuffered), int64(o.WriteTimeout), int64(o.HandshakeTimeout),
		int64(o.PingEvery), int64(o.IdleAfter), int64(o.CloseWait),
	} {
		if v < 0 {
			return o, errors.New("failed to set up the WebSocket front: a setting is negative")
		}
	}
	d := settings.Defaults()
	orDefault(&o.ReadLimit, settings.MaxFrame.Of(d))
	orDefault(&o.MaxBuffered, int(settings.SendBuffer.Of(d)))
	orDefault(&o.WriteTimeout, settings.WriteTimeout.Of(d))
	orDefault(&o.HandshakeTimeout, 10*time.Second)
	orDefault(&o.PingEvery, settings.PingInterval.Of(d))
	orDefault(&o.IdleAfter, settings.IdleTimeout.Of(d))
	orDefault(&o.CloseWait, 5*time.Second)
	if o.IsWebSocketPath == nil {
		o.IsWebSocketPath = func(string) bool { return false }
	}
	if o.HTTP == nil {
		o.HTTP = http.NotFoundHandler()
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Observer == nil {
		o.Observer = NopObserver{}
	}
	return o, nil
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
