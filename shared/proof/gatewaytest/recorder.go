package gatewaytest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

// Event is one call of a handler; the field of its kind is set.
type Event struct {
	Conn       gateway.Conn
	Connect    *gateway.ConnectEvent
	Frame      *gateway.FrameEvent // Data is a copy
	Confirmed  *gateway.ConfirmedEvent
	Disconnect *gateway.DisconnectEvent
}

// Recorder is a handler that remembers its events and watches that they come in
// the order that the contract promises. The functions, if set, decide what is
// answered; they are called after the event has been noted.
type Recorder struct {
	OnConnect    func(context.Context, gateway.ConnectEvent) (gateway.ConnectResult, error)
	OnFrame      func(context.Context, gateway.FrameEvent) (gateway.FrameResult, error)
	OnConfirmed  func(context.Context, gateway.ConfirmedEvent) error
	OnDisconnect func(context.Context, gateway.DisconnectEvent) error

	mu      sync.Mutex
	events  []Event
	phases  map[gateway.Conn]phase
	wrong   []string
	changed chan struct{} // closed and replaced with each event
}

var _ gateway.Handler = (*Recorder)(nil)

// phase is where a connection is in its life.
type phase struct {
	busy              string // the event that is being handled
	connected, closed bool
}

// NewRecorder returns a recorder that accepts everything.
func NewRecorder() *Recorder {
	return &Recorder{phases: make(map[gateway.Conn]phase), changed: make(chan struct{})}
}

// Connect implements gateway.Handler.
func (r *Recorder) Connect(ctx context.Context, e gateway.ConnectEvent) (res gateway.ConnectResult, err error) {
	r.begin("Connect", Event{Conn: e.Conn, Connect: &e})
	accepted := false // and stays so if OnConnect panics
	defer func() { r.end(e.Conn, accepted) }()
	if r.OnConnect != nil {
		res, err = r.OnConnect(ctx, e)
	}
	accepted = err == nil && res.Accepted()
	return res, err
}

// Frame implements gateway.Handler.
func (r *Recorder) Frame(ctx context.Context, e gateway.FrameEvent) (res gateway.FrameResult, err error) {
	kept := e
	kept.Data = slices.Clone(e.Data)
	r.begin("Frame", Event{Conn: e.Conn, Frame: &kept})
	defer r.end(e.Conn, true)
	if r.OnFrame != nil {
		return r.OnFrame(ctx, e)
	}
	return res, nil
}

// Confirmed implements gateway.Handler.
func (r *Recorder) Confirmed(ctx context.Context, e gateway.ConfirmedEvent) error {
	r.begin("Confirmed", Event{Conn: e.Conn, Confirmed: &e})
	defer r.end(e.Conn, true)
	if r.OnConfirmed != nil {
		return r.OnConfirmed(ctx, e)
	}
	return nil
}

// Disconnect implements gateway.Handler.
func (r *Recorder) Disconnect(ctx context.Context, e gateway.DisconnectEvent) error {
	r.begin("Disconnect", Event{Conn: e.Conn, Disconnect: &e})
	defer r.end(e.Conn, true)
	if r.OnDisconnect != nil {
		return r.OnDisconnect(ctx, e)
	}
	return nil
}

// begin notes an event and what is wrong with its time.
func (r *Recorder) begin(kind string, e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, known := r.phases[e.Conn]
	complain := func(what string) {
		r.wrong = append(r.wrong, fmt.Sprintf("%s of %s: %s", kind, e.Conn, what))
	}
	switch {
	case p.busy != "":
		complain("while " + p.busy + " is running")
	case p.closed:
		complain("after Disconnect")
	case kind == "Connect" && known:
		complain("for the second time")
	case kind != "Connect" && !p.connected:
		complain("without an accepted Connect")
	}
	p.busy = kind
	p.closed = p.closed || kind == "Disconnect"
	r.phases[e.Conn] = p
	r.events = append(r.events, e)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Recorder) end(c gateway.Conn, connected bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.phases[c]
	p.busy, p.connected = "", p.connected || connected
	r.phases[c] = p
	close(r.changed)
	r.changed = make(chan struct{})
}

// Check fails the test if events came at a time at which they must not.
func (r *Recorder) Check(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.wrong {
		t.Error(w)
	}
}

// Events returns what has come so far.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Wait waits until the events so far satisfy ok, and returns them.
func (r *Recorder) Wait(t testing.TB, what string, ok func([]Event) bool) []Event {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		r.mu.Lock()
		events, changed := slices.Clone(r.events), r.changed
		r.mu.Unlock()
		if ok(events) {
			return events
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("%s: did not happen; %d events came", what, len(events))
		}
	}
}

// WaitConnects waits for n accepted connections and returns their ids in order.
func (r *Recorder) WaitConnects(t testing.TB, n int) []gateway.Conn {
	t.Helper()
	var ids []gateway.Conn
	r.Wait(t, "connect", func(es []Event) bool {
		ids = nil
		for _, e := range es {
			if e.Connect != nil && r.accepted(e.Conn) {
				ids = append(ids, e.Conn)
			}
		}
		return len(ids) >= n
	})
	return ids
}

func (r *Recorder) accepted(c gateway.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phases[c].connected
}

// WaitFrames waits for n frames of a connection.
func (r *Recorder) WaitFrames(t testing.TB, c gateway.Conn, n int) []gateway.FrameEvent {
	t.Helper()
	var frames []gateway.FrameEvent
	r.Wait(t, "frame", func(es []Event) bool {
		frames = nil
		for _, e := range es {
			if e.Conn == c && e.Frame != nil {
				frames = append(frames, *e.Frame)
			}
		}
		return len(frames) >= n
	})
	return frames
}

// WaitMarks waits until n marks of a connection are confirmed, and returns them
// in the order in which that was said.
func (r *Recorder) WaitMarks(t testing.TB, c gateway.Conn, n int) []uint64 {
	t.Helper()
	var marks []uint64
	r.Wait(t, "confirmation", func(es []Event) bool {
		marks = nil
		for _, e := range es {
			if e.Conn == c && e.Confirmed != nil {
				marks = append(marks, e.Confirmed.Marks...)
			}
		}
		return len(marks) >= n
	})
	return marks
}

// WaitDisconnect waits until the Disconnect of a connection has returned.
func (r *Recorder) WaitDisconnect(t testing.TB, c gateway.Conn) gateway.DisconnectEvent {
	t.Helper()
	var got gateway.DisconnectEvent
	r.Wait(t, "disconnect", func(es []Event) bool {
		for _, e := range es {
			if e.Conn == c && e.Disconnect != nil {
				got = *e.Disconnect
				return !r.busy(c)
			}
		}
		return false
	})
	return got
}

func (r *Recorder) busy(c gateway.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phases[c].busy != ""
}
