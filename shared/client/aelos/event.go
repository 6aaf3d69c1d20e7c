package aelos

import "fmt"

// Message is one WebSocket message.
type Message struct {
	Text bool
	Data []byte
}

func control(c Control) Message { return Message{Text: true, Data: Encode(c)} }

// Event is the effect of a message on a peer, one of the types below.
type Event interface{ event() }

// The events.
type (
	// Welcomed says that the relay has admitted the peer.
	Welcomed struct{ Proto int }
	// Refused is an error of the relay.
	Refused struct{ Code, Msg string }
	// Watched tells a boat how many viewers watch, and which have come and gone.
	Watched struct {
		Count          int
		Attach, Detach []Tag
	}
	// BoatIs tells a viewer whether the boat is online.
	BoatIs struct{ Online bool }
	// Secured says that a handshake has succeeded. Only a boat gets Tag and App, the static
	// key of the viewer.
	Secured struct {
		Tag Tag
		App PublicKey
	}
	// Received is an opened payload. Only a boat gets Tag.
	Received struct {
		Tag       Tag
		Type      Type
		Counter   uint64
		Plaintext []byte
	}
	// Rejected is a handshake or a payload that was not made by the other end or not for
	// this session. It had no effect.
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

// opened is the event of a payload.
func opened(s *Session, tag Tag, t Type, counter uint64, ciphertext []byte) Event {
	plaintext, err := s.Open(nil, t, counter, ciphertext)
	if err != nil {
		return Rejected{tag, err}
	}
	return Received{tag, t, counter, plaintext}
}

// PingMessage asks the relay for a pong.
func PingMessage() Message { return control(Ping{}) }

// common is the common part of both ends.
type common struct {
	proto    int
	welcomed bool
}

// take handles the control frames that both ends receive. ok is false for any other.
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
