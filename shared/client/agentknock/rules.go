package agentknock

import (
	"fmt"
	"slices"
)

// Role is the side of a peer.
type Role int

// The roles.
const (
	ClientRole Role = iota
	DeviceRole
)

func (r Role) String() string { return [...]string{"client", "device"}[r] }

// rule says what the relay may send in frames of one type to one role.
type rule struct {
	scope scope
	// kinds are the allowed kinds.
	kinds []string
	// optionalKind says that the kind may be absent.
	optionalKind bool
	payload      bool
	snapshot     bool
	// states are the values of state.
	states []string
	report bool // an error
}

// scope is the object of a frame.
type scope int

const (
	unscoped  scope = iota // no object
	client                 // a client
	exchange               // an exchange
	anyScope               // any of these
	fullOrNot              // an exchange, or nothing
)

var clientStates = []string{"pending", "active", "suspended", "revoked"}

var rules = [...]map[string]rule{
	ClientRole: {
		Message:  {scope: exchange, kinds: []string{Response}, payload: true},
		Ack:      {scope: exchange, kinds: []string{Request, Completion}},
		Receipt:  {scope: exchange, kinds: []string{Request, Completion}},
		State:    {scope: exchange, snapshot: true},
		Inactive: {scope: exchange, kinds: []string{Request, Response, Completion}, optionalKind: true},
		Error:    {scope: anyScope, kinds: []string{Request, Response, Completion}, optionalKind: true, report: true},
	},
	DeviceRole: {
		Message:          {scope: exchange, kinds: []string{Request, Completion}, payload: true},
		Ack:              {scope: exchange, kinds: []string{Response}},
		Receipt:          {scope: exchange, kinds: []string{Response}},
		State:            {scope: exchange, snapshot: true},
		Inactive:         {scope: exchange, kinds: []string{Request, Response, Completion}, optionalKind: true},
		ClientState:      {scope: client, states: clientStates},
		PushRegistration: {states: []string{"missing", "registered", "invalid"}},
		CaughtUp:         {},
		Error:            {scope: fullOrNot, kinds: []string{Request, Response, Completion}, optionalKind: true, report: true},
	},
}

func (u rule) read(r *reader, f *Frame) {
	f.ClientID = r.text("client_id", u.scope == client || u.scope == exchange)
	f.RequestID = r.text("request_id", u.scope == exchange)
	f.AddressID = r.text("address_id", false)
	f.Kind = r.text("kind", u.kinds != nil && !u.optionalKind)
	if u.payload {
		f.Payload = r.value("payload", true)
	}
	if u.snapshot {
		f.Exchange, f.Request = r.text("exchange", true), r.text("request", true)
		f.Response, f.Completion = r.text("response", true), r.text("completion", true)
	}
	if u.states != nil {
		f.State = r.text("state", true)
	}
	if u.report {
		f.Code, f.Text = r.text("error", true), r.text("message", true)
		f.Retryable = r.flag("retryable")
		f.RetryAfter = r.milliseconds("retry_after_ms")
	}
}

func (u rule) check(f Frame) error {
	for _, id := range []string{f.ClientID, f.RequestID} {
		if id != "" && !IsID(id) {
			return fmt.Errorf("%s frame has the id %q", f.Type, id)
		}
	}
	switch {
	case u.scope == fullOrNot && (f.ClientID == "") != (f.RequestID == ""):
		return fmt.Errorf("%s frame has an incomplete scope", f.Type)
	case u.scope == fullOrNot && f.Kind != "" && f.ClientID == "":
		return fmt.Errorf("%s frame has a kind but no exchange", f.Type)
	case f.Kind != "" && u.kinds != nil && !slices.Contains(u.kinds, f.Kind):
		return fmt.Errorf("%s frame has the kind %q", f.Type, f.Kind)
	case u.states != nil && !slices.Contains(u.states, f.State):
		return fmt.Errorf("%s frame has the state %q", f.Type, f.State)
	case u.snapshot && !f.Valid():
		return fmt.Errorf("%s frame has an invalid combination: %+v", f.Type, f.Snapshot)
	case u.report && !f.Retryable && f.RetryAfter > 0:
		return fmt.Errorf("%s frame has a retry time but says that a retry cannot help", f.Type)
	}
	return nil
}

// combinations are the valid states of an exchange and its three messages.
var combinations = map[string][3][]string{
	"open":    {{"accepted", "delivered"}, {"absent", "accepted", "delivered"}, {"absent"}},
	"closing": {{"accepted", "delivered"}, {"absent", "delivered", "discarded"}, {"accepted"}},
	"settled": {{"delivered"}, {"absent", "delivered", "discarded"}, {"delivered"}},
	"expired": {{"delivered", "discarded"}, {"absent", "delivered", "discarded"}, {"absent", "discarded"}},
}

// Valid reports whether the specification knows this combination.
func (s Snapshot) Valid() bool {
	c, ok := combinations[s.Exchange]
	return ok && slices.Contains(c[0], s.Request) && slices.Contains(c[1], s.Response) && slices.Contains(c[2], s.Completion) &&
		(s.Response == "absent" || s.Request == "delivered")
}
