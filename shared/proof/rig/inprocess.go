package rig

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"testing"
	"time"

	"blindpost/shared/proof/port"
	"blindpost/shared/standalone"
)

// InProcess starts a relay in this process. Its data folder, certificate and log are
// the rig's.
func InProcess(t *testing.T, cfg standalone.Config) *Relay {
	t.Helper()
	cert := NewCertificate(t)
	r := &Relay{Address: port.Reserve(t), Roots: cert.Roots, Dir: t.TempDir(), Log: &Log{}}
	cfg.DataDir = r.Dir
	cfg.TLS = &tls.Config{Certificates: []tls.Certificate{cert.Pair}, NextProtos: []string{"http/1.1"}}
	cfg.Log = slog.New(slog.NewJSONHandler(r.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.start = func(t *testing.T) {
		t.Helper()
		l, err := net.Listen("tcp", r.Address)
		if err != nil {
			t.Fatalf("failed to listen: %v", err)
		}
		node, err := standalone.Open(cfg)
		if err != nil {
			t.Fatalf("failed to open: %v", err)
		}
		served := make(chan error, 1)
		go func() { served <- node.Serve(context.Background(), l) }()
		r.stop = func(t *testing.T) {
			t.Helper()
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := node.Shutdown(ctx, 0); err != nil {
				t.Errorf("failed to shut down: %v", err)
			}
			<-served
			r.stop = func(*testing.T) {}
		}
	}
	r.start(t)
	t.Cleanup(func() { r.stop(t) })
	return r
}
