package stories

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	wire "blindpost/shared/client/aelos"
	"blindpost/shared/dialect/aelos"
)

// simEnd is a boat or viewer of the simulation. It outlives its connections.
type simEnd struct {
	w    *world
	name string

	mu      sync.Mutex
	receive func(wire.Message) ([]wire.Message, wire.Event, error)
	line    *simLine // the latest
	events  []wire.Event
	faults  []error // what a relay must not do
}

// simLine is one connection.
type simLine struct {
	*wire.Line
	pipe    *simPipe
	expires time.Time
	ended   bool // guarded by mu of the end
	done    chan struct{}
}

// simPipe is a connection whose network can vanish: then nothing arrives any more,
// on either side, and nobody is told.
type simPipe struct {
	net.Conn
	vanished atomic.Bool
}

func (p *simPipe) Read(b []byte) (int, error) {
	for {
		n, err := p.Conn.Read(b)
		if err != nil || !p.vanished.Load() {
			return n, err
		}
	}
}

func (p *simPipe) Write(b []byte) (int, error) {
	if p.vanished.Load() {
		return len(b), nil
	}
	return p.Conn.Write(b)
}

// simTransport adds what a proxy adds.
type simTransport struct {
	http.RoundTripper
	header http.Header
}

func (t simTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, v := range t.header {
		r.Header[name] = v
	}
	return t.RoundTripper.RoundTrip(r)
}

// dial opens a connection and says hello. What comes of it is in the events.
func (e *simEnd) dial(hello func() wire.Message, from string, expires time.Time) error {
	l := &simLine{expires: expires, done: make(chan struct{})}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		nc, ok := e.w.Pipes.Dial("127.0.0.1")
		if !ok {
			return nil, errors.New("nobody listens")
		}
		l.pipe = &simPipe{Conn: nc}
		return l.pipe, nil
	}}
	var err error
	l.Line, _, err = wire.Dial(context.Background(), "ws://relay"+aelos.Path, wire.DialOptions{Client: &http.Client{Transport: simTransport{
		transport, http.Header{"X-Forwarded-Proto": {"https"}, "X-Forwarded-For": {from}},
	}}})
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.line = l
	first := hello()
	e.mu.Unlock()
	go e.read(l)
	return l.Send(context.Background(), first)
}

func (e *simEnd) read(l *simLine) {
	defer close(l.done)
	for {
		m, err := l.Receive(context.Background())
		e.mu.Lock()
		if err != nil {
			l.ended = true
			e.mu.Unlock()
			return
		}
		var replies []wire.Message
		if l == e.line { // what an older one still says counts for nothing
			var event wire.Event
			replies, event, err = e.receive(m)
			e.events = append(e.events, event)
			if err != nil {
				e.faults = append(e.faults, fmt.Errorf("%s: %w", e.name, err))
			}
		}
		e.mu.Unlock()
		_ = l.Send(context.Background(), replies...)
	}
}

// up reports whether the latest connection is open, as far as this end knows.
func (e *simEnd) up() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.line != nil && !e.line.ended && !e.line.pipe.vanished.Load()
}

// take returns the events since it was called last.
func (e *simEnd) take() []wire.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.events
	e.events = nil
	return got
}

// say sends what say makes.
func (e *simEnd) say(say func() ([]wire.Message, error)) error {
	e.mu.Lock()
	all, err := say()
	l := e.line
	e.mu.Unlock()
	if err != nil {
		return err
	}
	return l.Send(context.Background(), all...)
}

// How a connection ends.

func (e *simEnd) leave() { _ = e.latest().Close() }

func (e *simEnd) drop() { e.latest().Abort() }

func (e *simEnd) vanish() { e.latest().pipe.vanished.Store(true) }

func (e *simEnd) latest() *simLine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.line
}

// simBoat is a boat with those who may watch it.
type simBoat struct {
	simEnd
	org, id string
	proto   int
	end     *wire.Boat
	viewers []*simViewer
}

// simViewer is one of them.
type simViewer struct {
	simEnd
	boat   *simBoat
	user   string
	proto  int
	ctl    bool
	end    *wire.Viewer
	online *bool // what it was told last on this connection
}

func (w *world) simBoat(org, id string, proto, viewers int) *simBoat {
	w.T.Helper()
	b := &simBoat{simEnd: simEnd{w: w, name: org + "/" + id}, org: org, id: id, proto: proto}
	keys := w.simKeys()
	cfg := wire.BoatConfig{Proto: proto, Keys: keys, Random: rand.Reader}
	for i := range viewers {
		v := &simViewer{boat: b, user: fmt.Sprint("user-", i), proto: 1 + min(i%4, 1), ctl: i%2 == 0}
		v.w, v.name = w, b.name+"/"+v.user
		own := w.simKeys()
		cfg.Apps = append(cfg.Apps, own.Public)
		v.end = wire.NewViewer(wire.ViewerConfig{Proto: v.proto, Keys: own, Boat: keys.Public, Random: rand.Reader})
		v.receive = v.end.Receive
		b.viewers = append(b.viewers, v)
	}
	b.end = wire.NewBoat(cfg)
	b.receive = b.end.Receive
	return b
}

func (w *world) simKeys() wire.KeyPair {
	w.T.Helper()
	k, err := wire.GenerateKeyPair(rand.Reader)
	if err != nil {
		w.T.Fatal(err)
	}
	return k
}
