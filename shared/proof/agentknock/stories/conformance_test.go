package stories

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"blindpost/shared/proof/agentknock/conformance"
	"blindpost/shared/proof/rig"
	"blindpost/shared/push"
	"blindpost/shared/standalone"
)

// The conformance suite of the Agentknock dialect against a relay in this process.
func TestAgentknockConformance(t *testing.T) {
	conformance.Run(t, openAgentknock)
}

// oursAgentknock is what our own front can do.
func oursAgentknock(r *rig.Relay) conformance.Target {
	return conformance.Target{
		URL:           "wss://" + r.Address,
		TLS:           r.TLS(),
		Log:           r.Log.Bytes,
		Stored:        r.Stored,
		Restart:       r.Restart,
		CloseCodes:    true,
		RefusalBodies: true,
		BinaryFrames:  true,
		KnowsMethods:  true,
	}
}

func openAgentknock(t *testing.T, o conformance.Settings) conformance.Target {
	pushes := &pushBook{}
	target := oursAgentknock(rig.InProcess(t, standalone.Config{Limits: agentknockLimits(o), Pusher: pushes}))
	target.Lacks = []string{
		"Kill_AckMeansStored", "Kill_InTheMiddleOfABurst", "Kill_WhatHTTPHasAnsweredHolds", "Kill_PeersAtWork",
	}
	target.Pushes = pushes.all
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

func set[T comparable](limit *T, to T) {
	var zero T
	if to != zero {
		*limit = to
	}
}

// pushBook is a provider that keeps what it is given.
type pushBook struct {
	mu     sync.Mutex
	pushes []conformance.Push
}

var _ push.Sender = (*pushBook)(nil)

func (b *pushBook) Send(_ context.Context, n push.Notification) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pushes = append(b.pushes, conformance.Push{
		Token: n.Token, Android: n.Platform == push.Android, Payload: bytes.Clone(n.Payload),
	})
	return nil
}

func (b *pushBook) all() []conformance.Push {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]conformance.Push(nil), b.pushes...)
}
