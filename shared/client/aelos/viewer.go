package aelos

import (
	"errors"
	"fmt"
	"io"
)

// ViewerConfig are the results of a viewer's pairing.
type ViewerConfig struct {
	// Proto is the version of the protocol, 1 or 2; 0 is 2.
	Proto int
	// Keys are its static keys; Boat is the static key of the boat, from the introducer.
	Keys KeyPair
	Boat PublicKey
	// Random draws keys and nonces.
	Random io.Reader
}

// Viewer is the viewer's end of the protocol. It is not safe for concurrent use: the
// messages that it returns must be sent in order. It begins a handshake whenever the relay
// reports that the boat is online.
type Viewer struct {
	common
	cfg     ViewerConfig
	begun   *Initiator
	session *Session
}

// NewViewer makes a viewer.
func NewViewer(cfg ViewerConfig) *Viewer {
	if cfg.Proto == 0 {
		cfg.Proto = 2
	}
	return &Viewer{common: common{proto: cfg.Proto}, cfg: cfg}
}

// Hello begins a connection.
func (v *Viewer) Hello(token string) Message {
	v.welcomed, v.begun, v.session = false, nil, nil
	return control(Hello{Proto: v.proto, Role: "viewer", Token: token})
}

// Receive handles a message of the relay. An error means that the relay broke the protocol.
func (v *Viewer) Receive(m Message) (replies []Message, e Event, err error) {
	if !m.Text {
		e, err := v.payload(m.Data)
		return nil, e, err
	}
	c, err := ParseControl(m.Data)
	if err != nil {
		return nil, nil, err
	}
	if replies, e, ok, err := v.take(c); ok {
		return replies, e, err
	}
	switch c := c.(type) {
	case BoatStatus:
		if c.Online {
			m, err := v.Begin()
			return []Message{m}, BoatIs(c), err
		}
		return nil, BoatIs(c), nil
	case Hs2:
		return nil, v.finish(c), nil
	case Result:
		if v.proto < 2 {
			break
		}
		return nil, Answered{c.StatusCode, c.Message}, nil
	}
	return nil, nil, fmt.Errorf("relay sent %s to a viewer of proto %d", c.kind(), v.proto)
}

// Begin begins a handshake; the current session stays valid until it is answered. The relay
// fills in the tag of hs1.
func (v *Viewer) Begin() (Message, error) {
	i, e, err := Initiate(v.cfg.Random, v.cfg.Keys, v.cfg.Boat)
	if err != nil {
		return Message{}, err
	}
	v.begun = i
	return control(Hs1{VS: "00000000", E: e}), nil
}

func (v *Viewer) finish(c Hs2) Event {
	if v.begun == nil {
		return Rejected{Err: errors.New("there is no handshake to answer")}
	}
	session, err := v.begun.Finish(c.E, c.S)
	if err != nil {
		return Rejected{Err: err}
	}
	v.session, v.begun = session, nil
	return Secured{}
}

func (v *Viewer) payload(frame []byte) (Event, error) {
	t, counter, ciphertext, err := SplitUntagged(frame)
	if err != nil {
		return nil, err
	}
	if !t.fromBoat() || t == Outcome && v.proto < 2 {
		return nil, fmt.Errorf("relay sent a payload of type %#02x to a viewer of proto %d", byte(t), v.proto)
	}
	if v.session == nil {
		return Rejected{Err: errNoSession}, nil
	}
	return opened(v.session, Tag{}, t, counter, ciphertext), nil
}

var errNoSession = errors.New("there is no session")

// Open appends the plaintext of a payload to dst, as Receive opens it, but without an
// allocation.
func (v *Viewer) Open(dst, frame []byte) (Type, []byte, error) {
	t, counter, ciphertext, err := SplitUntagged(frame)
	if err != nil {
		return t, dst, err
	}
	if v.session == nil {
		return t, dst, errNoSession
	}
	dst, err = v.session.Open(dst, t, counter, ciphertext)
	return t, dst, err
}

// Command seals a command for the boat.
func (v *Viewer) Command(plaintext []byte) (Message, error) { return v.seal(Command, plaintext) }

// Identify seals the viewer's description of itself.
func (v *Viewer) Identify(plaintext []byte) (Message, error) { return v.seal(Identify, plaintext) }

func (v *Viewer) seal(t Type, plaintext []byte) (Message, error) {
	if v.session == nil {
		return Message{}, errors.New("failed to seal: there is no session with the boat")
	}
	frame := AppendUntagged(make([]byte, 0, UntaggedHeader+SealedSize(len(plaintext))), t, v.session.lastSealed+1)
	frame, _, err := v.session.Seal(frame, t, plaintext)
	return Message{Data: frame}, err
}
