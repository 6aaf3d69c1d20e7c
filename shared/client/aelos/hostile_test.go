package aelos

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
)

// middle is a hostile relay. What it does honestly is
// here; what it does otherwise, the tests do with the messages in its hands.
type middle struct {
	t       *testing.T
	boat    *Boat
	viewers []*Viewer
	tags    []Tag
}

// newMiddle is a relay between a boat and n viewers, who all have a session.
func newMiddle(t *testing.T, n int) *middle {
	t.Helper()
	boatKeys := newKeys(t)
	cfg := BoatConfig{Keys: boatKeys, Random: rand.Reader}
	m := &middle{t: t}
	for range n {
		keys := newKeys(t)
		cfg.Apps = append(cfg.Apps, keys.Public)
		m.viewers = append(m.viewers, NewViewer(ViewerConfig{Keys: keys, Boat: boatKeys.Public, Random: rand.Reader}))
	}
	m.boat = NewBoat(cfg)
	m.boat.Hello("")
	wantEvent[Welcomed](m, m.boat, control(Welcome{2}))
	for i, v := range m.viewers {
		tag := Tag{0xa0, 0, 0, byte(i)}
		m.tags = append(m.tags, tag)
		v.Hello("")
		wantEvent[Welcomed](m, v, control(Welcome{2}))
		wantEvent[Watched](m, m.boat, control(Viewers{Count: i + 1, Attach: []string{tag.String()}}))
		hs1 := m.begin(i)
		_, hs2 := wantReply[Secured](m, m.boat, control(Hs1{tag.String(), hs1.E}))
		wantEvent[Secured](m, v, hs2)
	}
	return m
}

// begin makes a viewer begin a handshake.
func (m *middle) begin(viewer int) Hs1 {
	m.t.Helper()
	_, reply := wantReply[BoatIs](m, m.viewers[viewer], control(BoatStatus{true}))
	c, err := ParseControl(reply.Data)
	if err != nil {
		m.t.Fatal(err)
	}
	return c.(Hs1)
}

type receiver interface {
	Receive(Message) ([]Message, Event, error)
}

func wantEvent[E Event](m *middle, to receiver, message Message) E {
	m.t.Helper()
	e, _ := wantReply[E](m, to, message)
	return e
}

func wantReply[E Event](m *middle, to receiver, message Message) (e E, reply Message) {
	m.t.Helper()
	replies, got, err := to.Receive(message)
	e, ok := got.(E)
	if err != nil || !ok {
		m.t.Fatalf("got %#v, %v, want %T", got, err, e)
	}
	if len(replies) > 0 {
		reply = replies[0]
	}
	return e, reply
}

// wantForged wants a message not to open, for no other reason than that.
func (m *middle) wantForged(to receiver, message Message) {
	m.t.Helper()
	if e := wantEvent[Rejected](m, to, message); !errors.Is(e.Err, ErrForged) {
		m.t.Fatalf("refused for another reason: %v", e.Err)
	}
}

// publish makes the boat seal a snapshot for all, and returns them untagged, as
// they would go to the viewers.
func (m *middle) publish(text string) []Message {
	m.t.Helper()
	all, err := m.boat.Publish([]byte(text))
	if err != nil || len(all) != len(m.viewers) {
		m.t.Fatalf("published %d snapshots, %v", len(all), err)
	}
	for i := range all {
		all[i] = m.strip(all[i])
	}
	return all
}

func (m *middle) strip(from Message) Message {
	return Message{Data: append([]byte{from.Data[0]}, from.Data[5:]...)}
}

func (m *middle) splice(from Message, tag Tag) Message {
	return Message{Data: append(append([]byte{from.Data[0]}, tag[:]...), from.Data[1:]...)}
}

func relabelled(m Message, t Type) Message {
	return Message{Data: append([]byte{byte(t)}, m.Data[1:]...)}
}

func must(m Message, err error) Message {
	if err != nil {
		panic(err)
	}
	return m
}

// Many times, so that luck would show.
const often = 500

// A type byte changed on the way fails at the AEAD, in both directions, and the
// frame itself is good afterwards: nothing was burnt.
func TestRelabelledType(t *testing.T) {
	m := newMiddle(t, 1)
	v, tag := m.viewers[0], m.tags[0]
	for i := range often {
		text := fmt.Sprint("frame ", i)
		command := m.splice(must(v.Command([]byte(text))), tag)
		m.wantForged(m.boat, relabelled(command, Identify))
		if e := wantEvent[Received](m, m.boat, command); e.Type != Command || string(e.Plaintext) != text {
			t.Fatalf("got %v", e)
		}
		identify := m.splice(must(v.Identify([]byte(text))), tag)
		m.wantForged(m.boat, relabelled(identify, Command))
		wantEvent[Received](m, m.boat, identify)

		outcome := m.strip(must(m.boat.Answer(tag, []byte(text))))
		m.wantForged(v, relabelled(outcome, Snapshot))
		if e := wantEvent[Received](m, v, outcome); e.Type != Outcome || string(e.Plaintext) != text {
			t.Fatalf("got %v", e)
		}
		snapshot := m.publish(text)[0]
		m.wantForged(v, relabelled(snapshot, Outcome))
		wantEvent[Received](m, v, snapshot)
	}
}

// A type of the other direction, or none at all, is not even tried.
func TestTypeOfTheWrongLeg(t *testing.T) {
	m := newMiddle(t, 1)
	snapshot := m.publish("x")[0]
	command := m.splice(must(m.viewers[0].Command(nil)), m.tags[0])
	for b := range 256 {
		if ty := Type(b); !ty.fromBoat() {
			if _, e, err := m.viewers[0].Receive(relabelled(snapshot, ty)); err == nil {
				t.Errorf("the viewer makes %#v of type %d", e, b)
			}
		}
		if ty := Type(b); !ty.fromViewer() {
			if _, e, err := m.boat.Receive(relabelled(command, ty)); err == nil {
				t.Errorf("the boat makes %#v of type %d", e, b)
			}
		}
	}
	wantEvent[Received](m, m.viewers[0], snapshot)
	wantEvent[Received](m, m.boat, command)
}

// A frame under another viewer's tag opens for nobody: neither what goes to the
// boat, nor what comes from it.
func TestForgedTag(t *testing.T) {
	m := newMiddle(t, 3)
	for i := range often {
		text := fmt.Sprint("frame ", i)
		command := must(m.viewers[0].Command([]byte(text)))
		m.wantForged(m.boat, m.splice(command, m.tags[1]))
		m.wantForged(m.boat, m.splice(command, m.tags[2]))
		if e := wantEvent[Received](m, m.boat, m.splice(command, m.tags[0])); e.Tag != m.tags[0] {
			t.Fatal("it is taken for another viewer's")
		}
	}
	stranger := m.splice(must(m.viewers[0].Command(nil)), Tag{1, 2, 3, 4})
	wantEvent[Rejected](m, m.boat, stranger)
}

// The viewers get each other's frames.
func TestSwappedViewer(t *testing.T) {
	m := newMiddle(t, 3)
	for i := range often {
		all := m.publish(fmt.Sprint("snapshot ", i))
		for k, v := range m.viewers {
			m.wantForged(v, all[(k+1)%3])
			m.wantForged(v, all[(k+2)%3])
			wantEvent[Received](m, v, all[k])
		}
		// All counters are alike: it is not by them that a frame is refused.
		for k, tag := range m.tags {
			outcome := m.strip(must(m.boat.Answer(tag, []byte("x"))))
			m.wantForged(m.viewers[(k+1)%3], outcome)
			all[k] = outcome
		}
		for k, v := range m.viewers {
			wantEvent[Received](m, v, all[k])
		}
	}
}

// Whatever bit is turned: the frame does not open, the genuine one does
// afterwards.
func TestAnyBitTurned(t *testing.T) {
	m := newMiddle(t, 2)
	for _, c := range []struct {
		name  string
		to    receiver
		frame Message
	}{
		{"snapshot", m.viewers[0], m.publish("depth 4.2 m")[0]},
		{"outcome", m.viewers[0], m.strip(must(m.boat.Answer(m.tags[0], []byte("armed"))))},
		{"command", m.boat, m.splice(must(m.viewers[0].Command([]byte("arm"))), m.tags[0])},
		{"identify", m.boat, m.splice(must(m.viewers[0].Identify([]byte("me"))), m.tags[0])},
	} {
		for bit := range len(c.frame.Data) * 8 {
			turned := Message{Data: append([]byte(nil), c.frame.Data...)}
			turned.Data[bit/8] ^= 1 << (bit % 8)
			if _, e, _ := c.to.Receive(turned); e != nil {
				if _, ok := e.(Rejected); !ok {
					t.Fatalf("%s with bit %d turned is %#v", c.name, bit, e)
				}
			}
		}
		for cut := range len(c.frame.Data) {
			if _, e, _ := c.to.Receive(Message{Data: c.frame.Data[:cut]}); e != nil {
				if _, ok := e.(Rejected); !ok {
					t.Fatalf("%s cut to %d bytes is %#v", c.name, cut, e)
				}
			}
		}
		wantEvent[Received](m, c.to, c.frame)
		if e := wantEvent[Rejected](m, c.to, c.frame); !errors.Is(e.Err, ErrReplayed) {
			t.Errorf("%s again: %v", c.name, e.Err)
		}
	}
}

// What a viewer has sent may be under way while the boat is told that it has left: that
// is no fault of the relay, opens no session and is not answered.
func TestHandshakeOfAViewerThatHasLeft(t *testing.T) {
	m := newMiddle(t, 2)
	tag := m.tags[0].String()
	late := m.begin(0)
	wantEvent[Watched](m, m.boat, control(Viewers{Count: 1, Detach: []string{tag}}))
	if _, reply := wantReply[Rejected](m, m.boat, control(Hs1{tag, late.E})); reply.Data != nil {
		t.Errorf("the boat answers %s", reply.Data)
	}
	if got := m.boat.Secured(); len(got) != 1 || got[0] != m.tags[1] {
		t.Errorf("the boat has sessions with %v", got)
	}
}

// A relay that puts its own keys, or parts of other handshakes, into one gets a
// dead handshake, and the session so far is what it was.
func TestHandshakeInTheMiddle(t *testing.T) {
	m := newMiddle(t, 2)
	mine := newKeys(t)
	tag := m.tags[0].String()

	// To the boat it pretends to be an app.
	_, e, err := Initiate(rand.Reader, mine, m.boat.cfg.Keys.Public)
	if err != nil {
		t.Fatal(err)
	}
	wantEvent[Rejected](m, m.boat, control(Hs1{tag, e}))

	// To the app it pretends to be the boat: it cannot open hs1, and what it
	// answers does not open.
	hs1 := m.begin(0)
	if _, _, _, err := Respond(rand.Reader, mine, m.viewers[0].cfg.Keys.Public, hs1.E); !errors.Is(err, ErrBox) {
		t.Fatalf("it reads hs1: %v", err)
	}
	_, eOwn, err := Initiate(rand.Reader, mine, m.viewers[0].cfg.Keys.Public) // a key of its own, sealed to the app
	if err != nil {
		t.Fatal(err)
	}
	wantEvent[Rejected](m, m.viewers[0], control(Hs2{tag, eOwn, eOwn}))

	// It answers one app with what was meant for the other, whole and in parts.
	_, reply0 := wantReply[Secured](m, m.boat, control(Hs1{tag, m.begin(0).E}))
	_, reply1 := wantReply[Secured](m, m.boat, control(Hs1{m.tags[1].String(), m.begin(1).E}))
	parse := func(x Message) Hs2 {
		c, err := ParseControl(x.Data)
		if err != nil {
			t.Fatal(err)
		}
		return c.(Hs2)
	}
	hs0, other := parse(reply0), parse(reply1)
	for _, c := range []Hs2{{tag, other.E, other.S}, {tag, hs0.E, other.S}, {tag, other.E, hs0.S}, {tag, hs0.S, hs0.E}} {
		wantEvent[Rejected](m, m.viewers[0], control(c))
	}
	wantEvent[Secured](m, m.viewers[0], reply0)
	wantEvent[Secured](m, m.viewers[1], reply1)
	for i, message := range m.publish("still here") {
		wantEvent[Received](m, m.viewers[i], message)
	}
}

// An ephemeral key of an earlier handshake makes a dead session.
func TestSplicedEphemeral(t *testing.T) {
	m := newMiddle(t, 1)
	tag := m.tags[0].String()
	_, first := wantReply[Secured](m, m.boat, control(Hs1{tag, m.begin(0).E}))
	_, second := wantReply[Secured](m, m.boat, control(Hs1{tag, m.begin(0).E}))
	// The answer to the handshake before cannot be opened with the key of now.
	wantEvent[Rejected](m, m.viewers[0], first)
	wantEvent[Secured](m, m.viewers[0], second)
	wantEvent[Received](m, m.viewers[0], m.publish("x")[0])
}

// A handshake replayed in another viewer's place makes that viewer deaf; it
// gives the relay and the other viewer nothing.
func TestReplayedHandshake(t *testing.T) {
	m := newMiddle(t, 2)
	hs1 := m.begin(0)
	wantEvent[Secured](m, m.boat, control(Hs1{m.tags[1].String(), hs1.E}))
	all := m.publish("for the first app's eyes")
	m.wantForged(m.viewers[1], all[1])
	m.wantForged(m.viewers[0], all[1])
	m.wantForged(m.boat, m.splice(must(m.viewers[1].Command([]byte("arm"))), m.tags[1]))
}

// What a relay must not say is noticed.
func TestLies(t *testing.T) {
	for name, c := range map[string]struct {
		toBoat bool
		frames []Control
	}{
		"a boat's word in the relay's mouth": {false, []Control{Result{0, 200, "armed"}}},
		"hs1 to a viewer":                    {false, []Control{Hs1{"a0000000", "x"}}},
		"viewers to a viewer":                {false, []Control{Viewers{}}},
		"welcome again":                      {false, []Control{Welcome{2}}},
		"hs2 to a boat":                      {true, []Control{Hs2{"a0000000", "x", "y"}}},
		"boat-status to a boat":              {true, []Control{BoatStatus{true}}},
		"result to a boat":                   {true, []Control{Result{0, 503, ""}}},
		"hs1 of nobody":                      {true, []Control{Hs1{"01020304", "x"}}},
		"a viewer attached twice":            {true, []Control{Viewers{Count: 2, Attach: []string{"a0000000"}}}},
		"a viewer that left twice":           {true, []Control{Viewers{Count: 0, Detach: []string{"a0000000"}}, Viewers{Count: 0, Detach: []string{"a0000000"}}}},
		"a wrong count":                      {true, []Control{Viewers{Count: 3, Attach: []string{"b0000000"}}}},
	} {
		m := newMiddle(t, 1)
		var err error
		for _, f := range c.frames {
			if c.toBoat {
				_, _, err = m.boat.Receive(control(f))
			} else {
				_, _, err = m.viewers[0].Receive(control(f))
			}
		}
		if err == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
}

// A boat that comes back keeps its sessions with those who are still there.
func TestBoatComesBack(t *testing.T) {
	m := newMiddle(t, 2)
	m.boat.Hello("")
	if m.boat.Watchers() != 0 {
		t.Error("it counts viewers before it was told")
	}
	wantEvent[Welcomed](m, m.boat, control(Welcome{2}))
	e := wantEvent[Watched](m, m.boat, control(Viewers{Count: 1, Attach: []string{m.tags[1].String()}}))
	if e.Count != 1 || m.boat.Watchers() != 1 || len(m.boat.sessions) != 1 {
		t.Fatalf("got %v, %d sessions", e, len(m.boat.sessions))
	}
	all, err := m.boat.Publish([]byte("x"))
	if err != nil || len(all) != 1 {
		t.Fatal(len(all), err)
	}
	wantEvent[Received](m, m.viewers[1], m.strip(all[0]))
}
