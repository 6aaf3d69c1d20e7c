package agentknock

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// Incoming is a request or completion that a device has accepted.
type Incoming struct {
	ClientID  string
	RequestID string
	// AddressID is the address of an initial pairing, "" for others.
	AddressID string
	Kind      string
	Payload   json.RawMessage
}

// DeskOptions are the settings of a Desk.
type DeskOptions struct {
	// OnMessage is called with each message once, in order, before the device acknowledges
	// it. It must not wait for the desk.
	OnMessage func(Incoming)
	// Pause is the wait before it dials again; default 50 ms.
	Pause time.Duration
	// Impatient stops it when the relay refuses a connection, even temporarily.
	Impatient bool
}

// Desk runs a device: it remembers accepted messages over any number of connections, and
// repeats its own messages until the relay has them.
type Desk struct {
	keeper
	device *Device
	o      DeskOptions

	mu     sync.Mutex
	taken  map[identity]bool
	out    []*outgoing
	states map[string]string // of clients, as the relay said last
	asked  []*change
	caught bool // up, on this connection
	push   string
}

// identity identifies a message.
type identity struct{ client, request, kind string }

type outgoing struct {
	frame           Frame
	acked, received bool
	err             error
}

// change is a requested change of a client state.
type change struct {
	frame Frame
	// again says that it was also requested on an earlier connection.
	again bool
	done  bool
	err   error
}

// Start runs the device until Stop.
func (d *Device) Start(ctx context.Context, o DeskOptions) *Desk {
	k := &Desk{device: d, o: o, taken: make(map[identity]bool), states: make(map[string]string)}
	k.pause, k.impatient = o.Pause, o.Impatient
	k.dial = func(ctx context.Context) (*Conn, error) { return d.Dial(ctx, Options{}) }
	k.recover, k.take = k.unconfirmed, k.hear
	k.start(ctx)
	return k
}

// unconfirmed are the frames to repeat on a new connection.
func (d *Desk) unconfirmed() (again []Frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.caught = false
	for _, s := range d.asked {
		s.again = true
		again = append(again, s.frame)
	}
	d.out = slices.DeleteFunc(d.out, func(o *outgoing) bool { return o.err != nil || o.received })
	for _, o := range d.out {
		if o.acked {
			again = append(again, Frame{Type: Resume, ClientID: o.frame.ClientID, RequestID: o.frame.RequestID})
		} else {
			again = append(again, o.frame)
		}
	}
	return again
}

func (d *Desk) hear(c *Conn, f Frame) {
	if f.Type == Message {
		d.accept(f)
		_ = c.Send(context.Background(), Frame{Type: Ack, ClientID: f.ClientID, RequestID: f.RequestID, Kind: f.Kind})
		return
	}
	d.mu.Lock()
	d.note(f)
	d.mu.Unlock()
}

// accept accepts a message once.
func (d *Desk) accept(f Frame) {
	id := identity{f.ClientID, f.RequestID, f.Kind}
	d.mu.Lock()
	known := d.taken[id]
	d.taken[id] = true
	d.mu.Unlock()
	if !known && d.o.OnMessage != nil {
		d.o.OnMessage(Incoming{f.ClientID, f.RequestID, f.AddressID, f.Kind, f.Payload})
	}
}

func (d *Desk) note(f Frame) {
	switch f.Type {
	case CaughtUp:
		d.caught = true
	case PushRegistration:
		d.push = f.State
	case ClientState:
		d.states[f.ClientID] = f.State
		d.settle(func(s *change) bool { return s.frame.ClientID == f.ClientID && s.frame.State == f.State }, nil)
	case Error:
		if f.RequestID == "" && !f.Retryable {
			d.refused(f)
		}
	}
	if f.RequestID == "" {
		return
	}
	for _, o := range d.out {
		if o.frame.ClientID == f.ClientID && o.frame.RequestID == f.RequestID {
			o.note(f)
		}
	}
}

// settle ends the first matching change.
func (d *Desk) settle(fits func(*change) bool, err error) {
	if i := slices.IndexFunc(d.asked, fits); i >= 0 {
		d.asked[i].done, d.asked[i].err = true, err
		d.asked = slices.Delete(d.asked, i, i+1)
	}
}

// refused ends the first change with an error. A change that was also requested on an
// earlier connection counts as done: it may have happened then and cannot happen twice.
func (d *Desk) refused(f Frame) {
	var err error
	if len(d.asked) > 0 && !(d.asked[0].again && f.Code == "INVALID_CLIENT_STATE") {
		err = &RelayError{f}
	}
	d.settle(func(*change) bool { return true }, err)
}

func (o *outgoing) note(f Frame) {
	switch {
	case f.Type == Ack:
		o.acked = true
	case f.Type == Receipt, f.Type == State && f.Response == "delivered":
		o.acked, o.received = true, true
	case f.Type == State && f.Response == "accepted":
		o.acked = true
	case f.Type == State && (f.Response == "discarded" || f.Exchange == "expired"), f.Type == Inactive:
		o.err = ErrInactive
	case f.Type == Error && !f.Retryable:
		o.err = &RelayError{f}
	}
}

// CaughtUp waits until the relay has sent all waiting messages.
func (d *Desk) CaughtUp(ctx context.Context) error {
	return d.until(ctx, "caught_up", func() (bool, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.caught, nil
	})
}

// Push is the last state of the push registration that the relay sent.
func (d *Desk) Push() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.push
}

// Answer is a published response.
type Answer struct {
	d *Desk
	o *outgoing
}

// Respond publishes a response.
func (d *Desk) Respond(clientID, requestID string, payload json.RawMessage) *Answer {
	o := &outgoing{frame: Frame{Type: Message, ClientID: clientID, RequestID: requestID, Kind: Response, Payload: payload}}
	d.mu.Lock()
	d.out = append(d.out, o)
	d.mu.Unlock()
	d.send(o.frame)
	return &Answer{d, o}
}

// Accepted waits until the relay has the response.
func (a *Answer) Accepted(ctx context.Context) error {
	return a.until(ctx, "the acknowledgement", func() bool { return a.o.acked })
}

// Received waits until the client has the response.
func (a *Answer) Received(ctx context.Context) error {
	return a.until(ctx, "the receipt", func() bool { return a.o.received })
}

func (a *Answer) until(ctx context.Context, what string, ok func() bool) error {
	return a.d.until(ctx, what, func() (bool, error) {
		a.d.mu.Lock()
		defer a.d.mu.Unlock()
		if ok() {
			return true, nil
		}
		return false, a.o.err
	})
}

// SetClientState requests a state of a client and waits until the relay confirms it.
func (d *Desk) SetClientState(ctx context.Context, clientID, state string) error {
	s := &change{frame: Frame{Type: SetClientState, ClientID: clientID, State: state}}
	d.mu.Lock()
	d.asked = append(d.asked, s)
	d.mu.Unlock()
	d.send(s.frame)
	return d.until(ctx, "client_state", func() (bool, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return s.done, s.err
	})
}
