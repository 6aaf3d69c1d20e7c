package aelos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"blindpost/shared/relay"
)

// Types of control frames (section 3).
const (
	typeHello       = "hello"
	typeWelcome     = "welcome"
	typeError       = "error"
	typeViewers     = "viewers"
	typeBoatStatus  = "boat-status"
	typeHs1         = "hs1"
	typeHs2         = "hs2"
	typeRelayResult = "result"
	typePing        = "ping"
	typePong        = "pong"
)

// control is a control frame from a peer. Only the fields of its type are set.
type control struct {
	t     string
	proto int
	role  string
	token string
	vs    string
	// e and s are JSON strings as they came: the relay does not read them, and another
	// encoding might be longer.
	e string
	s string
}

var errControl = errors.New("control frame is malformed")

// parseControl reads a control frame that a peer may send to a relay. Of a frame that
// only the relay may send it reads the type alone. Field names match exactly; unknown
// fields are ignored, so that a later version may add some.
func parseControl(data []byte) (control, error) {
	// What is not UTF-8 would make a recipient fail.
	var fields map[string]json.RawMessage
	if !utf8.Valid(data) || json.Unmarshal(data, &fields) != nil || fields == nil {
		return control{}, errControl
	}
	var c control
	var err error
	str := func(name string) (v string) {
		raw := fields[name]
		if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &v) != nil {
			err = errControl
		}
		return v
	}
	written := func(name string) string {
		if str(name); err != nil {
			return ""
		}
		return string(fields[name])
	}
	c.t = str("t")
	if err != nil {
		return control{}, err
	}
	switch c.t {
	case typeHello:
		c.role, c.token = str("role"), str("token")
		var n float64
		if json.Unmarshal(fields["proto"], &n) != nil {
			return control{}, errControl
		}
		if n == 1 || n == 2 {
			c.proto = int(n)
		}
	case typeHs1:
		// The relay sets vs itself, so any string will do here.
		c.vs, c.e = str("vs"), written("e")
	case typeHs2:
		c.vs, c.e, c.s = str("vs"), written("e"), written("s")
	case typeWelcome, typeError, typeViewers, typeBoatStatus, typeRelayResult, typePing, typePong:
	default:
		return control{}, errControl
	}
	if err != nil {
		return control{}, err
	}
	return c, nil
}

// Control frames of the relay.

type welcomeFrame struct {
	T     string `json:"t"`
	Proto int    `json:"proto"`
}

type errorFrame struct {
	T    string `json:"t"`
	Code string `json:"code"`
	Msg  string `json:"msg,omitempty"`
}

type viewersFrame struct {
	T      string   `json:"t"`
	Count  int      `json:"count"`
	Attach []string `json:"attach,omitempty"`
	Detach []string `json:"detach,omitempty"`
}

type boatStatusFrame struct {
	T      string `json:"t"`
	Online bool   `json:"online"`
}

type hs1Frame struct {
	T  string          `json:"t"`
	VS string          `json:"vs"`
	E  json.RawMessage `json:"e"`
}

type hs2Frame struct {
	T  string          `json:"t"`
	VS string          `json:"vs"`
	E  json.RawMessage `json:"e"`
	S  json.RawMessage `json:"s"`
}

type resultFrame struct {
	T          string `json:"t"`
	ID         int    `json:"id"`
	StatusCode int    `json:"statusCode"`
	Message    string `json:"message"`
}

type pongFrame struct {
	T string `json:"t"`
}

// encode makes a text frame. It leaves the fields that it passes between peers as they
// are, without escapes for HTML.
func encode(v any) (relay.Frame, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return relay.Frame{}, fmt.Errorf("failed to encode a frame: %w", err)
	}
	return relay.Frame{Data: bytes.TrimSuffix(b.Bytes(), []byte("\n")), Text: true}, nil
}
