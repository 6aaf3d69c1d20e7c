package aelos

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// BoatConfig are the results of a boat's pairing.
type BoatConfig struct {
	// Proto is the version of the protocol, 1 or 2; 0 is 2.
	Proto int
	// Keys are its static keys.
	Keys KeyPair
	// Apps are the static keys of the viewers that may watch, from the introducer.
	Apps []PublicKey
	// Random draws keys and nonces.
	Random io.Reader
}

// Boat is the boat's end of the protocol. It is not safe for concurrent use: the messages
// that it returns must be sent in order. It outlives its connections; each begins with
// [Boat.Hello].
type Boat struct {
	common
	cfg BoatConfig

	// roster are the attached viewers, oldest first; heard says that the relay has listed
	// them on this connection, and left are those that have left since.
	roster   []Tag
	heard    bool
	left     map[Tag]bool
	sessions map[Tag]*Session
}

// NewBoat makes a boat.
func NewBoat(cfg BoatConfig) *Boat {
	if cfg.Proto == 0 {
		cfg.Proto = 2
	}
	return &Boat{common: common{proto: cfg.Proto}, cfg: cfg, left: map[Tag]bool{}, sessions: map[Tag]*Session{}}
}

// Hello begins a connection.
func (b *Boat) Hello(token string) Message {
	b.welcomed, b.heard, b.left = false, false, map[Tag]bool{}
	return control(Hello{Proto: b.proto, Role: "boat", Token: token})
}

// Watchers is the number of attached viewers on this connection.
func (b *Boat) Watchers() int {
	if !b.heard {
		return 0
	}
	return len(b.roster)
}

// Receive handles a message of the relay. An error means that the relay broke the protocol.
func (b *Boat) Receive(m Message) (replies []Message, e Event, err error) {
	if !m.Text {
		return b.payload(m.Data)
	}
	c, err := ParseControl(m.Data)
	if err != nil {
		return nil, nil, err
	}
	if replies, e, ok, err := b.take(c); ok {
		return replies, e, err
	}
	switch c := c.(type) {
	case Viewers:
		e, err := b.viewers(c)
		return nil, e, err
	case Hs1:
		return b.respond(c)
	}
	return nil, nil, fmt.Errorf("relay sent %s to a boat", c.kind())
}

// viewers updates the roster. The first frame on a connection lists all attached viewers,
// and may list those that left since the last frame. The boat keeps the sessions of listed
// viewers and drops all others.
func (b *Boat) viewers(c Viewers) (Event, error) {
	e := Watched{Count: c.Count}
	if !b.heard {
		b.roster = nil
	}
	for _, s := range c.Attach {
		tag, _ := ParseTag(s) // was checked
		if slices.Contains(b.roster, tag) {
			return nil, errors.New("relay attaches a viewer twice")
		}
		b.roster = append(b.roster, tag)
		e.Attach = append(e.Attach, tag)
	}
	for _, s := range c.Detach {
		tag, _ := ParseTag(s)
		e.Detach = append(e.Detach, tag)
		switch i := slices.Index(b.roster, tag); {
		case i >= 0:
			b.roster = slices.Delete(b.roster, i, i+1)
			b.left[tag] = true
		case b.heard:
			return nil, errors.New("relay detaches a viewer that was not attached")
		}
	}
	b.heard = true
	if c.Count != len(b.roster) {
		return nil, fmt.Errorf("relay counts %d viewers, and has named %d", c.Count, len(b.roster))
	}
	for tag := range b.sessions {
		if !slices.Contains(b.roster, tag) {
			delete(b.sessions, tag)
		}
	}
	return e, nil
}

// respond answers a handshake of the app whose key opens it.
func (b *Boat) respond(c Hs1) ([]Message, Event, error) {
	tag, err := ParseTag(c.VS)
	if err != nil {
		return nil, nil, err
	}
	if b.left[tag] { // while this was under way
		return nil, Rejected{tag, errLeft}, nil
	}
	if !slices.Contains(b.roster, tag) {
		return nil, nil, errors.New("relay sent hs1 of a viewer that was not attached")
	}
	for _, app := range b.cfg.Apps {
		e, s, session, err := Respond(b.cfg.Random, b.cfg.Keys, app, c.E)
		if errors.Is(err, ErrBox) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		b.sessions[tag] = session
		return []Message{control(Hs2{VS: c.VS, E: e, S: s})}, Secured{Tag: tag, App: app}, nil
	}
	return nil, Rejected{tag, ErrBox}, nil
}

var errLeft = errors.New("the viewer has left")

func (b *Boat) payload(frame []byte) ([]Message, Event, error) {
	t, tag, counter, ciphertext, err := SplitTagged(frame)
	if err != nil {
		return nil, nil, err
	}
	if !t.fromViewer() || b.proto < 2 {
		return nil, nil, fmt.Errorf("relay sent a payload of type %#02x to a boat of proto %d", byte(t), b.proto)
	}
	session := b.sessions[tag]
	if session == nil {
		return nil, Rejected{tag, errNoSession}, nil
	}
	return nil, opened(session, tag, t, counter, ciphertext), nil
}

// Publish seals a snapshot for each viewer with a session.
func (b *Boat) Publish(plaintext []byte) ([]Message, error) {
	var all []Message
	for _, tag := range b.Secured() {
		m, err := b.seal(Snapshot, tag, plaintext)
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Secured are the attached viewers with a session, oldest first.
func (b *Boat) Secured() []Tag {
	if !b.heard {
		return nil
	}
	var all []Tag
	for _, tag := range b.roster {
		if b.sessions[tag] != nil {
			all = append(all, tag)
		}
	}
	return all
}

// Answer seals the outcome of a command for the viewer that sent it.
func (b *Boat) Answer(tag Tag, plaintext []byte) (Message, error) {
	return b.seal(Outcome, tag, plaintext)
}

// Append appends to dst a frame of type t for a viewer, as Publish and Answer make it, but
// without an allocation.
func (b *Boat) Append(dst []byte, t Type, tag Tag, plaintext []byte) ([]byte, error) {
	session := b.sessions[tag]
	if session == nil {
		return dst, errors.New("failed to seal: there is no session with this viewer")
	}
	dst = AppendTagged(dst, t, tag, session.lastSealed+1)
	dst, _, err := session.Seal(dst, t, plaintext)
	return dst, err
}

func (b *Boat) seal(t Type, tag Tag, plaintext []byte) (Message, error) {
	frame, err := b.Append(make([]byte, 0, TaggedHeader+SealedSize(len(plaintext))), t, tag, plaintext)
	return Message{Data: frame}, err
}
