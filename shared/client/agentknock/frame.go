package agentknock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// MaxFrame is the size of the largest frame in bytes, both ways.
const MaxFrame = 256 << 10

// Frame types.
const (
	Message          = "message"
	Ack              = "ack"
	Receipt          = "receipt"
	Resume           = "resume"
	State            = "state"
	Inactive         = "inactive"
	Error            = "error"
	SetClientState   = "set_client_state"
	ClientState      = "client_state"
	PushRegistration = "push_registration"
	CaughtUp         = "caught_up"
)

// Message kinds.
const (
	Request    = "request"
	Response   = "response"
	Completion = "completion"
)

// Frame is a frame of any type. Type decides which members are used; an empty string or a
// nil Payload is an absent member.
type Frame struct {
	Type      string
	ClientID  string
	RequestID string
	AddressID string
	Kind      string
	// Payload is the JSON text of the frame, unchanged.
	Payload json.RawMessage
	// Of a state frame.
	Snapshot
	// State is the state of a client or of the push registration.
	State string
	// Of an error frame.
	Code       string
	Text       string
	Retryable  bool
	RetryAfter time.Duration
}

// Snapshot is the state of an exchange.
type Snapshot struct{ Exchange, Request, Response, Completion string }

// Encode writes the frame as JSON, with the bytes of the payload unchanged.
func (f Frame) Encode() []byte {
	b := make([]byte, 0, 192+len(f.Payload))
	b = append(b, `{"type":`...)
	b = appendString(b, f.Type)
	for _, m := range [...]struct{ name, value string }{
		{"client_id", f.ClientID}, {"request_id", f.RequestID}, {"address_id", f.AddressID}, {"kind", f.Kind},
		{"exchange", f.Exchange}, {"request", f.Request}, {"response", f.Response}, {"completion", f.Completion},
		{"state", f.State}, {"error", f.Code}, {"message", f.Text},
	} {
		if m.value != "" {
			b = append(b, `,"`+m.name+`":`...)
			b = appendString(b, m.value)
		}
	}
	if f.Type == Error {
		b = strconv.AppendBool(append(b, `,"retryable":`...), f.Retryable)
		if f.RetryAfter > 0 {
			b = strconv.AppendInt(append(b, `,"retry_after_ms":`...), f.RetryAfter.Milliseconds(), 10)
		}
	}
	if f.Payload != nil {
		b = append(append(b, `,"payload":`...), f.Payload...)
	}
	return append(b, '}')
}

func appendString(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // never fails
	return append(b, quoted...)
}

// String describes the frame without its payload.
func (f Frame) String() string {
	size := "none"
	if f.Payload != nil {
		size = strconv.Itoa(len(f.Payload)) + " bytes"
	}
	f.Payload = nil
	s := string(f.Encode())
	if f.Type == Message {
		s += " payload: " + size
	}
	return s
}

// members splits a JSON object. It accepts values nested as deep as those of the suite,
// which encoding/json refuses to decode at once.
func members(data []byte) (map[string]json.RawMessage, error) {
	m := make(map[string]json.RawMessage)
	if json.Unmarshal(data, &m) == nil {
		if m == nil {
			return nil, errors.New("is null")
		}
		return m, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("is no JSON object")
	}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err == nil && ok {
			err = d.Decode(&value)
		}
		if err != nil || !ok {
			return nil, errors.New("is no JSON object")
		}
		m[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("is no JSON object")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("goes on after its end")
	}
	return m, nil
}

// Decode reads a frame that the relay sent to a peer of that role. Its error names what the
// specification does not allow.
func Decode(data []byte, to Role) (Frame, error) {
	m, err := members(data)
	if err != nil {
		return Frame{}, fmt.Errorf("frame %w", err)
	}
	r := reader{members: m}
	f := Frame{Type: r.text("type", true)}
	rule, known := rules[to][f.Type]
	if !known {
		return f, fmt.Errorf("the relay must not send a %q to a %s", f.Type, to)
	}
	rule.read(&r, &f)
	if r.fault != nil {
		return f, fmt.Errorf("%s frame %w", f.Type, r.fault)
	}
	return f, rule.check(f)
}

// reader reads the members of an object and keeps the first fault.
type reader struct {
	members map[string]json.RawMessage
	fault   error
}

func (r *reader) failed(format string, args ...any) {
	if r.fault == nil {
		r.fault = fmt.Errorf(format, args...)
	}
}

// value returns a member, nil if it is absent.
func (r *reader) value(name string, required bool) json.RawMessage {
	v, ok := r.members[name]
	if !ok && required {
		r.failed("lacks %s", name)
	}
	return v
}

// read decodes a member into to; its JSON must begin with first.
func (r *reader) read(name string, required bool, first string, to any) {
	v := r.value(name, required)
	if v == nil {
		return
	}
	if !bytes.ContainsAny(v[:1], first) || json.Unmarshal(v, to) != nil {
		r.failed("has a %s of the wrong type", name)
	}
}

func (r *reader) text(name string, required bool) (s string) {
	r.read(name, required, `"`, &s)
	if s == "" && r.members[name] != nil {
		r.failed("has an empty %s", name)
	}
	return s
}

func (r *reader) flag(name string) (b bool) {
	r.read(name, true, "tf", &b)
	return b
}

func (r *reader) milliseconds(name string) time.Duration {
	var ms int64
	r.read(name, false, "0123456789", &ms)
	return time.Duration(ms) * time.Millisecond
}
