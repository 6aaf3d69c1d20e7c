package agentknock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrInactive says that an exchange has ended.
var ErrInactive = errors.New("exchange is inactive")

// RelayError is an error frame.
type RelayError struct{ Frame }

func (e *RelayError) Error() string { return fmt.Sprintf("relay says %s: %s", e.Code, e.Text) }

// SessionOptions are the settings of a Session.
type SessionOptions struct {
	// Pairing dials the initial-pairing route.
	Pairing bool
	// Pause is the wait before it dials again; default 50 ms.
	Pause time.Duration
	// Impatient stops it when the relay refuses a connection, even temporarily.
	Impatient bool
}

// Session runs a client: it carries exchanges over any number of connections, by the rules
// for reconnection and recovery.
type Session struct {
	keeper
	client *Client

	mu        sync.Mutex
	exchanges map[string]*Exchange
	order     []*Exchange
}

// Start runs the client until Stop.
func (c *Client) Start(ctx context.Context, o SessionOptions) *Session {
	s := &Session{client: c, exchanges: make(map[string]*Exchange)}
	s.pause, s.impatient = o.Pause, o.Impatient
	s.dial = func(ctx context.Context) (*Conn, error) {
		if o.Pairing {
			return c.DialPairing(ctx, Options{})
		}
		return c.Dial(ctx, Options{})
	}
	s.recover, s.take = s.unconfirmed, s.hear
	s.start(ctx)
	return s
}

// Exchange is one exchange of a session.
type Exchange struct {
	s  *Session
	id string

	// guarded by s.mu
	request    json.RawMessage // nil once the relay has it
	delivered  bool
	response   json.RawMessage
	answered   bool            // and the relay has been told so
	completion json.RawMessage // nil once the relay has it
	completed  bool
	err        error
}

// Begin publishes a request. On a pairing connection its id is the id of the client.
func (s *Session) Begin(requestID string, payload json.RawMessage) *Exchange {
	x := &Exchange{s: s, id: requestID, request: payload}
	s.mu.Lock()
	s.exchanges[requestID] = x
	s.order = append(s.order, x)
	s.mu.Unlock()
	s.send(x.frame(Request, payload))
	return x
}

func (x *Exchange) frame(kind string, payload json.RawMessage) Frame {
	return Frame{Type: Message, ClientID: x.s.client.ID, RequestID: x.id, Kind: kind, Payload: payload}
}

// unconfirmed are the frames to repeat on a new connection.
func (s *Session) unconfirmed() (again []Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.order {
		if x.response != nil && x.err == nil && !x.completed {
			// The relay does not confirm an acknowledgement, so it is repeated.
			again = append(again, Frame{Type: Ack, ClientID: s.client.ID, RequestID: x.id, Kind: Response})
		}
		switch {
		case x.err != nil || x.completed:
		case x.completion != nil:
			again = append(again, x.frame(Completion, x.completion))
		case x.request != nil:
			again = append(again, x.frame(Request, x.request))
		case x.response == nil:
			again = append(again, Frame{Type: Resume, ClientID: s.client.ID, RequestID: x.id})
		}
	}
	s.order = slices.DeleteFunc(s.order, func(x *Exchange) bool { return x.err != nil || x.completed })
	return again
}

// hear handles a frame of the relay.
func (s *Session) hear(c *Conn, f Frame) {
	s.mu.Lock()
	ack := s.note(f)
	s.mu.Unlock()
	if ack {
		_ = c.Send(context.Background(), Frame{Type: Ack, ClientID: f.ClientID, RequestID: f.RequestID, Kind: f.Kind})
		s.mu.Lock()
		s.exchanges[f.RequestID].answered = true // a completion may only come after the ack
		s.mu.Unlock()
	}
}

// note updates the exchange of a frame, and reports whether to acknowledge it.
func (s *Session) note(f Frame) (ack bool) {
	if f.Type == Error && !f.Retryable && f.RequestID == "" {
		for _, x := range s.order {
			x.fail(&RelayError{f})
		}
		return false
	}
	x := s.exchanges[f.RequestID]
	if x == nil || f.ClientID != s.client.ID {
		return false
	}
	switch f.Type {
	case Ack:
		if f.Kind == Completion {
			x.completion, x.completed = nil, true
		} else {
			x.request = nil
		}
	case Receipt:
		x.delivered = true
	case State:
		x.request = nil
		x.delivered = x.delivered || f.Request == "delivered"
		if f.Exchange == "expired" {
			x.fail(fmt.Errorf("exchange has expired: %w", ErrInactive))
		}
	case Message:
		x.request, x.delivered = nil, true
		if x.response == nil {
			x.response = f.Payload
		}
		return true
	case Inactive:
		if f.Kind == "" || f.Kind == Request || x.completion != nil {
			x.fail(ErrInactive)
		}
	case Error:
		if !f.Retryable {
			x.fail(&RelayError{f})
		}
	}
	return false
}

func (x *Exchange) fail(err error) {
	if !x.completed && x.err == nil {
		x.err = err
	}
}

func (x *Exchange) until(ctx context.Context, what string, ok func() bool) error {
	return x.s.until(ctx, what, func() (bool, error) {
		x.s.mu.Lock()
		defer x.s.mu.Unlock()
		if ok() {
			return true, nil
		}
		return false, x.err
	})
}

// ID is the request id.
func (x *Exchange) ID() string { return x.id }

// Accepted waits until the relay has the request.
func (x *Exchange) Accepted(ctx context.Context) error {
	return x.until(ctx, "the acknowledgement", func() bool { return x.request == nil })
}

// Delivered waits until the device has the request.
func (x *Exchange) Delivered(ctx context.Context) error {
	return x.until(ctx, "the receipt", func() bool { return x.delivered })
}

// Response waits for the response.
func (x *Exchange) Response(ctx context.Context) (payload json.RawMessage, err error) {
	err = x.until(ctx, "the response", func() bool {
		payload = x.response
		return x.answered
	})
	return payload, err
}

// Complete publishes the completion and waits until the relay has it.
func (x *Exchange) Complete(ctx context.Context, payload json.RawMessage) error {
	x.s.mu.Lock()
	if !x.completed {
		x.completion = payload
	}
	x.s.mu.Unlock()
	x.s.send(x.frame(Completion, payload))
	return x.until(ctx, "the acknowledgement", func() bool { return x.completed })
}
