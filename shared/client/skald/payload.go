package skald

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"
)

// Kind is the kind of a payload.
type Kind string

// Kinds from agent to client.
const (
	KindInboxUpdate  Kind = "inbox_update"
	KindNotification Kind = "notification"
)

// Kinds from client to agent.
const (
	KindHello                 Kind = "hello"
	KindInboxRequest          Kind = "inbox_request"
	KindApprovalResponse      Kind = "approval_response"
	KindClarificationResponse Kind = "clarification_response"
	KindElicitationResponse   Kind = "elicitation_response"
	KindLogout                Kind = "logout"
)

// KindAck is sent by both sides.
const KindAck Kind = "ack"

// SentBy reports whether this side sends this kind in the protocol. This package does not
// enforce it: a receiver ignores kinds that it does not expect.
func (k Kind) SentBy(r Role) bool {
	switch k {
	case KindInboxUpdate, KindNotification:
		return r == RoleAgent
	case KindHello, KindInboxRequest, KindApprovalResponse, KindClarificationResponse,
		KindElicitationResponse, KindLogout:
		return r == RoleClient
	case KindAck:
		return r == RoleAgent || r == RoleClient
	}
	return false
}

// Freshness is how far a payload's time may be from the receiver's: the time
// that a relay keeps messages.
const Freshness = 7 * 24 * time.Hour

const payloadVersion = 1

var uuidV4 = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$`)

// Payload is the JSON document inside a message: v, kind, id and ts, then
// members of its own.
type Payload struct {
	Kind Kind
	// ID is a UUID v4. Acknowledgements refer to it, and a receiver recognises a repetition
	// by it.
	ID string
	// TS is when the sender made it, in Unix milliseconds.
	TS int64
	// Body is a JSON object with the other members, in their order; nil if
	// there are none.
	Body json.RawMessage
}

// NewPayload makes a payload. body becomes its other members: nil, or what
// encoding/json turns into an object without v, kind, id and ts.
func NewPayload(rand io.Reader, now time.Time, kind Kind, body any) (Payload, error) {
	id, err := NewUUID(rand)
	if err != nil {
		return Payload{}, err
	}
	p := Payload{Kind: kind, ID: id, TS: now.UnixMilli()}
	if body != nil {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(body); err != nil {
			return Payload{}, fmt.Errorf("failed to encode payload body: %w", err)
		}
		if raw := bytes.TrimSpace(b.Bytes()); !bytes.Equal(raw, []byte("null")) {
			p.Body = raw
		}
	}
	if _, err := p.Marshal(); err != nil {
		return Payload{}, err
	}
	return p, nil
}

// ackBody names the payload that an acknowledgement is for.
type ackBody struct {
	RefID string `json:"ref_id"`
}

// NewAck makes the acknowledgement of the payload with this id.
func NewAck(rand io.Reader, now time.Time, id string) (Payload, error) {
	return NewPayload(rand, now, KindAck, ackBody{RefID: id})
}

// AckedID returns the id of the payload that an acknowledgement is for.
func (p Payload) AckedID() (string, bool) {
	var b ackBody
	if p.Kind != KindAck || p.Decode(&b) != nil || b.RefID == "" {
		return "", false
	}
	return b.RefID, true
}

// Decode reads the members other than v, kind, id and ts into v.
func (p Payload) Decode(v any) error {
	body := p.Body
	if body == nil {
		body = json.RawMessage("{}")
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("failed to decode payload body: %w", err)
	}
	return nil
}

// Time returns TS as a time.
func (p Payload) Time() time.Time { return time.UnixMilli(p.TS) }

// Fresh reports whether the payload was made within [Freshness] of now. Receivers should
// ignore other payloads, which may have been held back.
func (p Payload) Fresh(now time.Time) bool { return now.Sub(p.Time()).Abs() <= Freshness }

// String shows kind and id and hides the content.
func (p Payload) String() string { return fmt.Sprintf("%s %s", p.Kind, p.ID) }

// Format implements fmt.Formatter, so that no verb shows the content.
func (p Payload) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, p.String()) }

// MarshalText returns String, so that a JSON log does not show the content of a payload.
// Marshal returns the document.
func (p Payload) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// LogValue returns String.
func (p Payload) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Marshal returns the JSON document: v, kind, id, ts, then the members of Body
// in their order. Errors are [ErrPayload].
func (p Payload) Marshal() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	kind, err := json.Marshal(p.Kind)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"v":%d,"kind":%s,"id":"%s","ts":%d`, payloadVersion, kind, p.ID, p.TS)
	err = eachMember(p.Body, func(name string, value json.RawMessage) error {
		if reserved(name) {
			return fmt.Errorf("body has a member %q", name)
		}
		return appendMember(&b, name, value)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// ParsePayload reads a JSON document. It accepts unknown kinds and members. It refuses
// repeated members, another version, an id that is no UUID v4, and bytes after the
// document. Errors are [ErrPayload] and quote no content.
func ParsePayload(doc []byte) (Payload, error) {
	if !utf8.Valid(doc) {
		return Payload{}, fmt.Errorf("%w: not UTF-8", ErrPayload)
	}
	var p Payload
	var version json.RawMessage
	var ts json.RawMessage
	var body bytes.Buffer
	if len(doc) == 0 {
		return Payload{}, fmt.Errorf("%w: empty", ErrPayload)
	}
	err := eachMember(doc, func(name string, value json.RawMessage) error {
		switch name {
		case "v":
			version = value
		case "ts":
			ts = value
		case "kind":
			return jsonString(value, (*string)(&p.Kind))
		case "id":
			return jsonString(value, &p.ID)
		default:
			return appendMember(&body, name, value)
		}
		return nil
	})
	if err != nil {
		return Payload{}, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	if string(version) != strconv.Itoa(payloadVersion) {
		return Payload{}, fmt.Errorf("%w: version is not %d", ErrPayload, payloadVersion)
	}
	// ParseInt refuses fractions and exponents: the protocol has integers
	// without a decimal point.
	if p.TS, err = strconv.ParseInt(string(ts), 10, 64); err != nil {
		return Payload{}, fmt.Errorf("%w: ts is no integer", ErrPayload)
	}
	if body.Len() > 0 {
		// appendMember puts a comma before each member.
		p.Body = append(append(json.RawMessage("{"), body.Bytes()[1:]...), '}')
	}
	return p, p.check()
}

func (p Payload) check() error {
	switch {
	case p.Kind == "":
		return fmt.Errorf("%w: no kind", ErrPayload)
	case !utf8.ValidString(string(p.Kind)):
		return fmt.Errorf("%w: kind is not UTF-8", ErrPayload)
	case !uuidV4.MatchString(p.ID):
		return fmt.Errorf("%w: id is no UUID v4", ErrPayload)
	case p.TS < 0:
		return fmt.Errorf("%w: ts is negative", ErrPayload)
	case !utf8.Valid(p.Body):
		return fmt.Errorf("%w: body is not UTF-8", ErrPayload)
	}
	return nil
}

func reserved(name string) bool {
	return name == "v" || name == "kind" || name == "id" || name == "ts"
}

// eachMember calls f for each member of a JSON object, in order. It refuses other documents,
// and repeated members, because readers disagree about which of them counts. Empty input is
// an object without members.
func eachMember(doc []byte, f func(name string, value json.RawMessage) error) error {
	if len(doc) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return errors.New("not valid JSON")
		}
		name, ok := t.(string)
		if !ok {
			return errors.New("not valid JSON")
		}
		if seen[name] {
			return errors.New("a member comes twice")
		}
		seen[name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return errors.New("not valid JSON")
		}
		if err := f(name, value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("not valid JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more after the JSON object")
	}
	return nil
}

func appendMember(b *bytes.Buffer, name string, value json.RawMessage) error {
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	b.WriteByte(',')
	b.Write(key)
	b.WriteByte(':')
	return json.Compact(b, value)
}

func jsonString(value json.RawMessage, s *string) error {
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, s) != nil {
		return errors.New("a member is no string")
	}
	return nil
}

// NewUUID draws a random UUID (version 4) in lower case.
func NewUUID(rand io.Reader) (string, error) {
	var u [16]byte
	if _, err := io.ReadFull(rand, u[:]); err != nil {
		return "", fmt.Errorf("failed to draw an id: %w", err)
	}
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}
