package agentknock

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"blindpost/shared/relay"
)

// MaxFrame is the size of the largest frame in bytes, both ways.
const MaxFrame = 256 << 10

// Types of frames.
const (
	typeMessage        = "message"
	typeAck            = "ack"
	typeReceipt        = "receipt"
	typeResume         = "resume"
	typeState          = "state"
	typeInactive       = "inactive"
	typeError          = "error"
	typeSetClientState = "set_client_state"
	typeClientState    = "client_state"
	typePush           = "push_registration"
	typeCaughtUp       = "caught_up"
)

// kind is the kind of a message.
type kind string

// The kinds.
const (
	request    kind = "request"
	response   kind = "response"
	completion kind = "completion"
)

// scope is what a frame is about. A kind comes with both ids.
type scope struct {
	Client  string `json:"client_id,omitempty"`
	Request string `json:"request_id,omitempty"`
	Kind    kind   `json:"kind,omitempty"`
}

// whole is the scope without its kind.
func (s scope) whole() scope { return scope{Client: s.Client, Request: s.Request} }

// frame is a frame from a peer. Its type decides which fields are set.
type frame struct {
	Type string
	scope
	State   string
	Payload []byte // the JSON text of the payload, a part of the frame
}

// rule is what a role may send in frames of one type.
type rule struct {
	kinds   []kind // nil: no kind
	payload bool
	state   bool // instead of a request id
}

var (
	clientMay = map[string]rule{
		typeMessage: {kinds: []kind{request, completion}, payload: true},
		typeAck:     {kinds: []kind{response}},
		typeResume:  {},
	}
	deviceMay = map[string]rule{
		typeMessage:        {kinds: []kind{response}, payload: true},
		typeAck:            {kinds: []kind{request, completion}},
		typeResume:         {},
		typeSetClientState: {state: true},
	}
)

// Errors of a frame. None of these texts repeats anything of the frame.
var (
	errNoType    = errors.New("the frame has no type")
	errForbidden = errors.New("a frame of this type is not for this role to send")
	errNoID      = errors.New("an id is missing or not a canonical ULID")
	errKind      = errors.New("the kind is missing, unknown, or not for this role to send")
	errNoPayload = errors.New("the payload is missing")
	errState     = errors.New("the state is missing or unknown")
)

// raw holds the members of a frame that any type uses.
type raw struct{ typ, client, request, kind, state, payload []byte }

func (r *raw) take(name string, value []byte) error {
	to, ok := map[string]*[]byte{
		"type": &r.typ, "client_id": &r.client, "request_id": &r.request,
		"kind": &r.kind, "state": &r.state, "payload": &r.payload,
	}[name]
	if !ok {
		return nil // unknown members are ignored
	}
	if *to != nil {
		return errTwice
	}
	*to = value
	return nil
}

// decode reads a frame of a peer whose role may send these types. If it fails, the frame
// holds the scope as far as it is known, to go with the error.
func decode(data []byte, may map[string]rule) (frame, error) {
	var r raw
	if err := members(data, r.take); err != nil {
		return frame{}, err
	}
	var f frame
	var ok bool
	client, hasClient := unquote(r.client)
	id, hasID := unquote(r.request)
	if hasClient && hasID && validID(client) && validID(id) {
		f.Client, f.Request = client, id
	}
	if f.Type, ok = unquote(r.typ); !ok {
		return f, errNoType
	}
	u, ok := may[f.Type]
	if !ok {
		return f, errForbidden
	}
	if u.state {
		return f.withState(r, client)
	}
	if f.Client == "" {
		return f, errNoID
	}
	if u.kinds != nil {
		k, ok := unquote(r.kind)
		if !ok || !slices.Contains(u.kinds, kind(k)) {
			return f, errKind
		}
		f.Kind = kind(k)
	}
	if u.payload {
		if r.payload == nil {
			return f, errNoPayload
		}
		f.Payload = r.payload
	}
	return f, nil
}

// withState reads a set_client_state, which names a client and no exchange.
func (f frame) withState(r raw, client string) (frame, error) {
	f.scope = scope{}
	if !validID(client) {
		return f, errNoID
	}
	state, ok := unquote(r.state)
	if !ok || !slices.Contains([]string{stateActive, stateSuspended, stateRevoked}, state) {
		return f, errState
	}
	f.Client, f.State = client, state
	return f, nil
}

// Frames to a peer.

// messageFrame puts a payload into a message, byte for byte. Only a message of an initial
// pairing to a device has an address.
func messageFrame(s scope, address string, payload []byte) relay.Frame {
	b := make([]byte, 0, len(payload)+224)
	b = append(b, `{"type":"message","client_id":"`...)
	b = append(b, s.Client...)
	b = append(b, `","request_id":"`...)
	b = append(b, s.Request...)
	if address != "" {
		b = append(b, `","address_id":"`...)
		b = append(b, address...)
	}
	b = append(b, `","kind":"`...)
	b = append(b, s.Kind...)
	b = append(b, `","payload":`...)
	b = append(b, payload...)
	return relay.Frame{Data: append(b, '}'), Text: true}
}

// messageSize is the size of a message frame without its payload.
func messageSize(s scope, address string) int { return len(messageFrame(s, address, nil).Data) }

// encode makes a frame of a value that holds nothing but strings, numbers and booleans,
// which cannot fail.
func encode(v any) relay.Frame {
	b, err := json.Marshal(v)
	if err != nil {
		panic("agentknock: a frame of plain values does not encode: " + err.Error())
	}
	return relay.Frame{Data: b, Text: true}
}

type bare struct {
	Type string `json:"type"`
	scope
}

func ackFrame(s scope) relay.Frame      { return encode(bare{typeAck, s}) }
func receiptFrame(s scope) relay.Frame  { return encode(bare{typeReceipt, s}) }
func inactiveFrame(s scope) relay.Frame { return encode(bare{typeInactive, s}) }
func caughtUpFrame() relay.Frame        { return encode(bare{Type: typeCaughtUp}) }

func stateFrame(s scope, x Exchange) relay.Frame {
	return encode(struct {
		bare
		Exchange   string `json:"exchange"`
		Request    string `json:"request"`
		Response   string `json:"response"`
		Completion string `json:"completion"`
	}{bare{typeState, s.whole()}, x.Phase.String(), x.Request.String(), x.Response.String(), x.Completion.String()})
}

func clientStateFrame(client, state string) relay.Frame {
	return encode(struct {
		bare
		State string `json:"state"`
	}{bare{typeClientState, scope{Client: client}}, state})
}

func pushFrame(state string) relay.Frame {
	return encode(struct {
		Type  string `json:"type"`
		State string `json:"state"`
	}{typePush, state})
}

// Codes of error frames.
const (
	codeInvalidFrame       = "INVALID_FRAME"
	codeInvalidRequestID   = "INVALID_REQUEST_ID"
	codeRequestIDConflict  = "REQUEST_ID_CONFLICT"
	codeClientInactive     = "CLIENT_INACTIVE"
	codeRateLimited        = "RATE_LIMITED"
	codeCapacityExceeded   = "CAPACITY_EXCEEDED"
	codeInvalidClientState = "INVALID_CLIENT_STATE"
)

// fault is the content of an error frame.
type fault struct {
	code, message string
	// retryAfter is when to retry; 0: the error is not retryable.
	retryAfter time.Duration
}

func (f *fault) Error() string { return f.code + ": " + f.message }

func (f *fault) frame(s scope) relay.Frame {
	return encode(struct {
		bare
		Error      string `json:"error"`
		Message    string `json:"message"`
		Retryable  bool   `json:"retryable"`
		RetryAfter int64  `json:"retry_after_ms,omitempty"`
	}{bare{typeError, s}, f.code, f.message, f.retryAfter > 0, milliseconds(f.retryAfter)})
}

// milliseconds rounds up, so that a peer that waits for so long does not retry too early.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
