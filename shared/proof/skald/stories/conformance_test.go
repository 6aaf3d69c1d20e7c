package stories

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/proof/rig"
	"blindpost/shared/proof/skald/conformance"
	"blindpost/shared/push"
	"blindpost/shared/standalone"
)

// The conformance suite of the Skald dialect against a relay in this process.
func TestConformance(t *testing.T) {
	conformance.Run(t, openInProcess)
}

// And against the binary, which can be killed.
func TestConformanceBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary")
	}
	binary := rig.Build(t)
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target {
		return openBinary(t, binary, o)
	})
}

// ours is what our own front can do.
func ours(r *rig.Relay) conformance.Target {
	target := conformance.Target{
		URL:           "wss://" + r.Address + skald.Path,
		TLS:           r.TLS(),
		Log:           r.Log.Bytes,
		Restart:       r.Restart,
		KnowsDelivery: true,
		Pings:         true,
		CloseCodes:    true,
		// Only Linux has all of 127.0.0.0/8 by itself.
		OwnAddresses: runtime.GOOS == "linux",
	}
	if !target.OwnAddresses {
		target.Lacks = []string{"Section10_ConnectionsPerIPAreEachTheirOwn"}
	}
	return target
}

func openInProcess(t *testing.T, o conformance.Settings) conformance.Target {
	pushes := &pushBook{}
	target := ours(rig.InProcess(t, standalone.Config{
		Limits:    limits(o),
		Pusher:    pushes,
		PushText:  push.Text{Title: "Skald", Body: "Action required"},
		PingEvery: o.PingInterval,
		IdleAfter: o.IdleTimeout,
	}))
	target.Lacks = append(target.Lacks,
		"Property1_KillWhileTheRecipientIsAway", "Property1_KillWhileTheRecipientReads", "Property1_KillDuringPairing")
	target.Pushes = pushes.all
	return target
}

// limits are those of the specification, where o does not say otherwise. The
// budget of control frames is our own and follows that of messages.
func limits(o conformance.Settings) standalone.Limits {
	l := standalone.DefaultLimits()
	set(&l.Relay.MessagesPerMinute, int64(o.MessagesPerMinute))
	set(&l.Relay.ConnectionsPerIP, int64(o.ConnectionsPerIP))
	set(&l.Relay.MailboxCap, int64(o.MailboxCap))
	set(&l.Relay.MessageTTL, o.QueueTTL)
	set(&l.Skald.MaxFrame, int64(o.MaxFrame))
	set(&l.Skald.MaxLiveFrame, int64(o.MaxLiveFrame))
	set(&l.Skald.ChallengeTimeout, o.ChallengeTimeout)
	set(&l.Skald.NamespaceTTL, o.NamespaceTTL)
	l.Relay.ControlPerMinute = max(l.Relay.ControlPerMinute, l.Relay.MessagesPerMinute)
	return l
}

func set[T comparable](limit *T, to T) {
	var zero T
	if to != zero {
		*limit = to
	}
}

// openBinary runs `blindpost serve`.
func openBinary(t *testing.T, binary string, o conformance.Settings) conformance.Target {
	l := limits(o)
	flags := []string{
		"--connections-per-ip", fmt.Sprint(l.Relay.ConnectionsPerIP),
		"--messages-per-minute", fmt.Sprint(l.Relay.MessagesPerMinute),
		"--control-frames-per-minute", fmt.Sprint(l.Relay.ControlPerMinute),
		"--mailbox-cap", fmt.Sprint(l.Relay.MailboxCap),
		"--message-ttl", l.Relay.MessageTTL.String(),
		"--max-frame", fmt.Sprint(l.Skald.MaxFrame),
		"--max-live-frame", fmt.Sprint(l.Skald.MaxLiveFrame),
		"--challenge-timeout", l.Skald.ChallengeTimeout.String(),
		"--namespace-ttl", l.Skald.NamespaceTTL.String(),
	}
	if o.PingInterval != 0 {
		flags = append(flags, "--ping-interval", o.PingInterval.String())
	}
	if o.IdleTimeout != 0 {
		flags = append(flags, "--idle-timeout", o.IdleTimeout.String())
	}
	r := rig.Binary(t, binary, flags...)
	target := ours(r)
	target.Lacks = append(target.Lacks, // nobody sees what it pushes
		"Section5_RevokedTokenIsForgotten", "Section6_3_PushForWhoIsAway", "Section6_3_NoPushWithoutReason",
		"Section6_3_PushOfALongMessageOnlyWakes", "Section4_3_DeviceTokenIsUpdated")
	target.Kill = r.Kill
	return target
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
