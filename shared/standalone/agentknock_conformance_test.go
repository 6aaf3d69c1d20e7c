package standalone_test

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"blindpost/shared/proof/agentknock/conformance"
	"blindpost/shared/standalone"
)

// The conformance suite of the Agentknock dialect against a relay in this process.
func TestAgentknockConformance(t *testing.T) {
	conformance.Run(t, openAgentknock)
}

// oursAgentknock is what our own front can do.
func oursAgentknock(address string, roots *x509.CertPool) conformance.Target {
	return conformance.Target{
		URL:           "wss://" + address,
		TLS:           &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		CloseCodes:    true,
		RefusalBodies: true,
		BinaryFrames:  true,
		KnowsMethods:  true,
	}
}

func openAgentknock(t *testing.T, o conformance.Settings) conformance.Target {
	pair, _, roots := certificate(t)
	pushes, log := &pushBook{}, &logBook{}
	cfg := standalone.Config{
		DataDir: t.TempDir(),
		Limits:  agentknockLimits(o),
		Pusher:  pushes,
		TLS:     &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		Log:     slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	address := freeAddress(t)
	stop := serve(t, cfg, address)
	t.Cleanup(func() { stop() })

	target := oursAgentknock(address, roots)
	target.Lacks = []string{
		"Kill_AckMeansStored", "Kill_InTheMiddleOfABurst", "Kill_WhatHTTPHasAnsweredHolds", "Kill_PeersAtWork",
	}
	target.Log = log.bytes
	target.Pushes = func() (all []conformance.Push) {
		for _, p := range pushes.all() {
			all = append(all, conformance.Push(p))
		}
		return all
	}
	target.Stored = func(t *testing.T) []byte { return folder(t, cfg.DataDir) }
	target.Restart = func(t *testing.T) {
		t.Helper()
		stop()
		stop = serve(t, cfg, address)
	}
	return target
}

// agentknockLimits are the defaults, where o does not say otherwise.
func agentknockLimits(o conformance.Settings) standalone.Limits {
	l := standalone.DefaultLimits()
	set(&l.Relay.ConnectionsPerIP, int64(o.ConnectionsPerIP))
	a := &l.Agentknock
	set(&a.FramesPerMinute, int64(o.FramesPerMinute))
	set(&a.ClientExchangesPerMinute, int64(o.NewExchanges))
	set(&a.ClientOpenExchanges, int64(o.OpenExchanges))
	set(&a.WakeInterval, o.WakeInterval)
	// What all clients of a device may do together follows.
	a.DeviceExchangesPerMinute = max(a.DeviceExchangesPerMinute, a.ClientExchangesPerMinute)
	a.DeviceOpenExchanges = max(a.DeviceOpenExchanges, a.ClientOpenExchanges)
	return l
}

// folder is all that is in a folder's files.
func folder(t *testing.T, dir string) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, content...)
		return err
	})
	if err != nil {
		t.Fatalf("failed to read the relay's files: %v", err)
	}
	return all
}
