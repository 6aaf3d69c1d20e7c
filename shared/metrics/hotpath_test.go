package metrics

import (
	"testing"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/relay"
)

// hotPath is everything that is called per connection, frame, message or job.
func hotPath(m *Metrics) map[string]func() {
	front, core := m.Front("skald"), m.Relay()
	n := push.Notification{Platform: push.IOS, Kind: push.Wake}
	return map[string]func(){
		"Authenticated":  func() { core.Authenticated("skald", "client", "ok") },
		"unknown":        func() { m.Front("unknown").FrameOut(100) },
		"JobRun":         func() { m.JobRun("push", 1, time.Millisecond, true) },
		"TableOperation": func() { m.TableOperation("write", "ok", time.Millisecond) },
		"front":          func() { front.Opened(); front.FrameIn(1); front.FrameOut(1); front.Buffered(1) },
		"front ends":     func() { front.Confirmed(1, time.Second); front.Closed(gateway.CloseNormal); front.Refused(429) },
		"core": func() {
			core.Joined("skald", "agent")
			core.Frame("skald", "message", time.Second)
			core.Message(relay.ClassStored, relay.Delivered)
			core.Depth(3)
			core.Confirmed(1)
			core.Left("skald", "agent")
		},
		"core drops": func() { core.Dropped(relay.ClassStored, "expired", 1); core.Pushed(n, push.ErrTokenGone) },
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	for name, do := range hotPath(New(Options{})) {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkFrame(b *testing.B) {
	core := New(Options{}).Relay()
	b.ReportAllocs()
	for b.Loop() {
		core.Frame("skald", "message", time.Millisecond)
	}
}

func BenchmarkAuthenticated(b *testing.B) {
	core := New(Options{}).Relay()
	b.ReportAllocs()
	for b.Loop() {
		core.Authenticated("skald", "client", "ok")
	}
}
