package conformance

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"

	wire "blindpost/shared/client/aelos"
)

var section5 = []story{
	{Name: "Section5_SessionThroughTheRelay", Tell: sessionThrough},
	{Name: "Section5_PublishesOnlyWhileWatched", Tell: sessionWatched},
	{Name: "Section5_WrongKeysMakeNoSession", Tell: sessionWrongKeys},
}

// crew is a boat and its viewers with keys and sessions, who say what they mean.
type crew struct {
	*boat
	ship    *peer
	helm    *wire.Boat
	keys    wire.KeyPair
	viewers []*watcher
}

// watcher is a viewer of a crew.
type watcher struct {
	*peer
	end *wire.Viewer
}

func newKeys(t *testing.T) wire.KeyPair {
	t.Helper()
	k, err := wire.GenerateKeyPair(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// crew makes a boat with n viewers, who all have a session.
func (b *boat) crew(n int) *crew {
	b.t.Helper()
	c := &crew{boat: b, keys: newKeys(b.t)}
	var apps []wire.PublicKey
	for range n {
		keys := newKeys(b.t)
		apps = append(apps, keys.Public)
		c.viewers = append(c.viewers, &watcher{end: wire.NewViewer(wire.ViewerConfig{Keys: keys, Boat: c.keys.Public, Random: rand.Reader})})
	}
	c.helm = wire.NewBoat(wire.BoatConfig{Keys: c.keys, Apps: apps, Random: rand.Reader})
	c.embark()
	for i, w := range c.viewers {
		name := fmt.Sprint("app-", b.r.number())
		token := b.mint(wire.ControllerClaims(b.org, name, b.id, inAnHour()))
		w.peer = b.r.stranger(b.t, name, line{})
		w.role.Store("viewer")
		w.do(w.end.Hello(token))
		wantEvent[wire.Welcomed](w.peer, w.end)
		wantEvent[wire.BoatIs](w.peer, w.end)
		if e := wantEvent[wire.Watched](c.ship, c.helm); e.Count != i+1 {
			b.t.Fatalf("%d watch instead of %d", e.Count, i+1)
		}
		if e := wantEvent[wire.Secured](c.ship, c.helm); e.App != apps[i] {
			b.t.Fatal("it is another app")
		}
		wantEvent[wire.Secured](w.peer, w.end)
	}
	return c
}

// embark connects the boat's end. If nobody watches, that is told at once or not.
func (c *crew) embark() {
	c.t.Helper()
	c.ship = c.r.stranger(c.t, c.id, line{})
	c.ship.role.Store("boat")
	c.ship.do(c.helm.Hello(c.mint(wire.BoatClaims(c.org, c.id, inAnHour()))))
	wantEvent[wire.Welcomed](c.ship, c.helm)
	c.ship.do(wire.PingMessage())
	for {
		switch e := step(c.ship, c.helm).(type) {
		case wire.Ponged:
			return
		case wire.Watched:
		default:
			c.t.Fatalf("%s gets %#v", c.ship.name, e)
		}
	}
}

func (p *peer) do(all ...wire.Message) {
	p.t.Helper()
	if err := p.post(all...); err != nil {
		p.t.Fatalf("%s: %v%s", p.name, err, p.unread())
	}
}

// step gives the next message to an end and sends what it answers.
func step(p *peer, end interface {
	Receive(wire.Message) ([]wire.Message, wire.Event, error)
}) wire.Event {
	p.t.Helper()
	m := p.frame("anything")
	replies, e, err := end.Receive(m.message)
	if err != nil {
		p.t.Fatalf("%s: %v (%v)", p.name, err, m)
	}
	p.do(replies...)
	return e
}

func wantEvent[E wire.Event](p *peer, end interface {
	Receive(wire.Message) ([]wire.Message, wire.Event, error)
}) E {
	p.t.Helper()
	got := step(p, end)
	e, ok := got.(E)
	if !ok {
		p.t.Fatalf("%s wants %T, gets %#v%s", p.name, e, got, p.unread())
	}
	return e
}

// plain is what must not be seen between the ends.
func (r *relay) plain(format string, args ...any) []byte {
	text := fmt.Appendf(nil, format, args...)
	r.secrets.Add("a text between the ends", text)
	return text
}

// publish sends a snapshot and wants every viewer to read it.
func (c *crew) publish(text []byte) {
	c.t.Helper()
	c.send(text)
	c.read(text)
}

func (c *crew) send(text []byte) {
	c.t.Helper()
	all, err := c.helm.Publish(text)
	if err != nil || len(all) != len(c.viewers) {
		c.t.Fatalf("published %d snapshots, %v", len(all), err)
	}
	c.ship.do(all...)
}

func (c *crew) read(text []byte) {
	c.t.Helper()
	for _, w := range c.viewers {
		if e := wantEvent[wire.Received](w.peer, w.end); e.Type != wire.Snapshot || !bytes.Equal(e.Plaintext, text) {
			c.t.Fatalf("%s reads %q", w.name, e.Plaintext)
		}
	}
}

// command sends one and wants the boat to read it and the viewer to read the
// outcome.
func (c *crew) command(w *watcher, text []byte) {
	c.t.Helper()
	m, err := w.end.Command(text)
	if err != nil {
		c.t.Fatal(err)
	}
	w.do(m)
	e := wantEvent[wire.Received](c.ship, c.helm)
	if e.Type != wire.Command || !bytes.Equal(e.Plaintext, text) {
		c.t.Fatalf("the boat reads %q", e.Plaintext)
	}
	done := append([]byte("done: "), text...)
	if m, err = c.helm.Answer(e.Tag, done); err != nil {
		c.t.Fatal(err)
	}
	c.ship.do(m)
	if e := wantEvent[wire.Received](w.peer, w.end); e.Type != wire.Outcome || !bytes.Equal(e.Plaintext, done) {
		c.t.Fatalf("%s reads %q", w.name, e.Plaintext)
	}
}

// Real handshakes, real payloads, all types, several viewers; and a new handshake
// on the way.
func sessionThrough(t *testing.T, r *relay) {
	c := r.boat(t).crew(3)
	for i := range 10 {
		c.publish(r.plain("depth %d.2 m below %s", i, c.id))
	}
	for i, w := range c.viewers {
		c.command(w, r.plain("arm the anchor watch of %s, says %d", c.id, i))
		m, err := w.end.Identify(r.plain("this is app %d of %s", i, c.id))
		if err != nil {
			t.Fatal(err)
		}
		w.do(m)
		if e := wantEvent[wire.Received](c.ship, c.helm); e.Type != wire.Identify {
			t.Fatalf("got %v", e)
		}
	}
	again, err := c.viewers[1].end.Begin()
	if err != nil {
		t.Fatal(err)
	}
	c.viewers[1].do(again)
	wantEvent[wire.Secured](c.ship, c.helm)
	wantEvent[wire.Secured](c.viewers[1].peer, c.viewers[1].end)
	c.publish(r.plain("after the rekey of %s", c.id))
	c.command(c.viewers[1], r.plain("and a command to %s", c.id))
}

// The count is the only thing that makes a boat publish.
func sessionWatched(t *testing.T, r *relay) {
	c := r.boat(t).crew(1)
	c.publish(r.plain("somebody watches %s", c.id))
	c.viewers[0].close()
	if e := wantEvent[wire.Watched](c.ship, c.helm); e.Count != 0 || c.helm.Watchers() != 0 {
		t.Fatalf("%d watch", e.Count)
	}
	if all, err := c.helm.Publish([]byte("nobody watches")); err != nil || len(all) > 0 {
		t.Fatalf("published %d snapshots, %v", len(all), err)
	}
}

// An app that the boat does not know gets no session, and neither does an app
// that was told another key of the boat's.
func sessionWrongKeys(t *testing.T, r *relay) {
	c := r.boat(t).crew(1)
	stranger := wire.NewViewer(wire.ViewerConfig{Keys: newKeys(t), Boat: c.keys.Public, Random: rand.Reader})
	p := c.r.stranger(t, "stranger", line{})
	p.role.Store("viewer")
	p.do(stranger.Hello(c.mint(wire.ViewerClaims(c.org, "stranger", c.id, inAnHour()))))
	wantEvent[wire.Welcomed](p, stranger)
	wantEvent[wire.BoatIs](p, stranger)
	wantEvent[wire.Watched](c.ship, c.helm)
	if e := wantEvent[wire.Rejected](c.ship, c.helm); !errors.Is(e.Err, wire.ErrBox) {
		t.Errorf("got %v", e.Err)
	}
	c.publish(r.plain("not for strangers on %s", c.id))
	p.wantNothing()
}
