package aelos

import "fmt"

// Message is one WebSocket message.
type Message struct {
	Text bool
	Data []byte
}

func control(c Control) Message { return Message{Text: true, Data: Encode(c)} }

// Event is what a message has meant to a peer, one of the types below.
type Event interface{ event() }

// The events.
type (
	// Welcomed says that the relay has let the peer in.
	Welcomed struct{ Proto int }
	// Refused is an error of the relay.
	Refused struct{ Code, Msg string }
	// Watched tells a boat how many watch, and who has come and gone.
	Watched struct {
		Count          int
		Attach, Detach []Tag
	}
	// BoatIs tells a viewer whether the boat is there.
	BoatIs struct{ Online bool }
	// Secured says that a handshake has succeeded. Tag is only the boat's, and so
	// is App: the static key of who it is.
	Secured struct {
		Tag Tag
		App PublicKey
	}
	// Received is a payload that was opened. Tag is only the boat's.
	Received struct {
		Tag       Tag
		Type      Type
		Counter   uint64
		Plaintext []byte
	}
	// Rejected is a handshake or a payload that was not made by the other end, or
	// not for this session. It has changed nothing.
	Rejected struct {
		Tag Tag
		Err error
	}
	// Answered is the relay's own answer to a command.
	Answered struct {
		StatusCode int
		Message    string
	}
	// Ponged is the answer to a ping.
	Ponged struct{}
	// Pinged is a ping, which was answered.
	Pinged struct{}
)

func (Welcomed) event() {}
func (Refused) event()  {}
func (Watched) event()  {}
func (BoatIs) event()   {}
func (Secured) event()  {}
func (Received) event() {}
func (Rejected) event() {}
func (Answered) event() {}
func (Ponged) event()   {}
func (Pinged) event()   {}

// opened is what has become of a payload.
func opened(s *Session, tag Tag, t Type, counter uint64, ciphertext []byte) Event {
	plaintext, err := s.Open(nil, t, counter, ciphertext)
	if err != nil {
		return Rejected{tag, err}
	}
	return Received{tag, t, counter, plaintext}
}

// PingMessage asks the relay for a pong.
func PingMessage() Message { return control(Ping{}) }

// common is what both ends do alike.
type common struct {
	proto    int
	welcomed bool
}

// take handles the control frames that come to either end. ok is false if it is
// none of those.
func (p *common) take(c Control) (replies []Message, e Event, ok bool, err error) {
	switch c := c.(type) {
	case Welcome:
		if p.welcomed || c.Proto != p.proto {
			return nil, nil, true, fmt.Errorf("relay welcomed to proto %d, or again", c.Proto)
		}
		p.welcomed = true
		return nil, Welcomed(c), true, nil
	case Error:
		return nil, Refused(c), true, nil
	case Ping:
		return []Message{control(Pong{})}, Pinged{}, true, nil
	case Pong:
		return nil, Ponged{}, true, nil
	}
	if !p.welcomed {
		return nil, nil, true, fmt.Errorf("relay sent %s before welcome", c.kind())
	}
	return nil, nil, false, nil
}
