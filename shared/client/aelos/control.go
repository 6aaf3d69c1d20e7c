package aelos

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Control is a control frame (section 3), one of the types below.
type Control interface{ kind() string }

// The control frames.
type (
	// Hello is the first frame of a peer.
	Hello struct {
		Proto int    `json:"proto"`
		Role  string `json:"role"`
		Token string `json:"token"`
	}
	// Welcome admits a peer.
	Welcome struct {
		Proto int `json:"proto"`
	}
	// Error is a refusal.
	Error struct {
		Code string `json:"code"`
		Msg  string `json:"msg,omitempty"`
	}
	// Viewers tells a boat which viewers watch.
	Viewers struct {
		Count  int      `json:"count"`
		Attach []string `json:"attach,omitempty"`
		Detach []string `json:"detach,omitempty"`
	}
	// BoatStatus tells a viewer whether the boat is online.
	BoatStatus struct {
		Online bool `json:"online"`
	}
	// Hs1 opens a handshake.
	Hs1 struct {
		VS string `json:"vs"`
		E  string `json:"e"`
	}
	// Hs2 answers it.
	Hs2 struct {
		VS string `json:"vs"`
		E  string `json:"e"`
		S  string `json:"s"`
	}
	// Result is the relay's own answer to a command.
	Result struct {
		ID         int    `json:"id"`
		StatusCode int    `json:"statusCode"`
		Message    string `json:"message"`
	}
	// Ping asks for Pong.
	Ping struct{}
	// Pong answers.
	Pong struct{}
)

func (Hello) kind() string      { return "hello" }
func (Welcome) kind() string    { return "welcome" }
func (Error) kind() string      { return "error" }
func (Viewers) kind() string    { return "viewers" }
func (BoatStatus) kind() string { return "boat-status" }
func (Hs1) kind() string        { return "hs1" }
func (Hs2) kind() string        { return "hs2" }
func (Result) kind() string     { return "result" }
func (Ping) kind() string       { return "ping" }
func (Pong) kind() string       { return "pong" }

// The codes of Error.
const (
	CodeAuth        = "auth"
	CodeProto       = "proto"
	CodeBoatOffline = "boat-offline"
	CodeLimit       = "limit"
)

// Encode writes a control frame.
func Encode(c Control) []byte {
	body, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("%T does not become JSON: %v", c, err)) // strings and numbers only
	}
	head := `{"t":"` + c.kind() + `"`
	if len(body) > len("{}") {
		head += ","
	}
	return append([]byte(head), body[1:]...)
}

// fields are the required and then the optional fields of a control frame.
type fields struct{ must, may []string }

var schema = map[string]fields{
	"hello":       {must: []string{"proto", "role", "token"}},
	"welcome":     {must: []string{"proto"}},
	"error":       {must: []string{"code"}, may: []string{"msg"}},
	"viewers":     {must: []string{"count"}, may: []string{"attach", "detach"}},
	"boat-status": {must: []string{"online"}},
	"hs1":         {must: []string{"vs", "e"}},
	"hs2":         {must: []string{"vs", "e", "s"}},
	"result":      {must: []string{"id", "statusCode", "message"}},
	"ping":        {},
	"pong":        {},
}

// check compares the fields of a frame with the schema, which allows no other fields and
// no null.
func (f fields) check(got map[string]json.RawMessage) error {
	known := 0
	for _, name := range f.must {
		if _, ok := got[name]; !ok {
			return fmt.Errorf("field %q is missing", name)
		}
		known++
	}
	for _, name := range f.may {
		if _, ok := got[name]; ok {
			known++
		}
	}
	if known != len(got) {
		return errors.New("there are fields that it should not have")
	}
	for name, v := range got {
		if string(v) == "null" {
			return fmt.Errorf("field %q is null", name)
		}
	}
	return nil
}

// ParseControl reads a control frame strictly, to detect a relay that adds to the protocol.
func ParseControl(text []byte) (Control, error) {
	var got map[string]json.RawMessage
	if err := json.Unmarshal(text, &got); err != nil {
		return nil, errors.New("failed to read a control frame: no JSON object")
	}
	var kind string
	if err := json.Unmarshal(got["t"], &kind); err != nil {
		return nil, errors.New("failed to read a control frame: it has no type")
	}
	want, ok := schema[kind]
	if !ok {
		return nil, fmt.Errorf("failed to read a control frame: unknown type %.20q", kind)
	}
	delete(got, "t")
	if err := want.check(got); err != nil {
		return nil, fmt.Errorf("failed to read %s: %w", kind, err)
	}
	var c Control
	var err error
	switch kind {
	case "hello":
		c, err = read[Hello](text)
	case "welcome":
		c, err = read[Welcome](text)
	case "error":
		c, err = read[Error](text)
	case "viewers":
		c, err = read[Viewers](text)
	case "boat-status":
		c, err = read[BoatStatus](text)
	case "hs1":
		c, err = read[Hs1](text)
	case "hs2":
		c, err = read[Hs2](text)
	case "result":
		c, err = read[Result](text)
	case "ping":
		c = Ping{}
	case "pong":
		c = Pong{}
	}
	if err == nil {
		err = values(c)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read %s: %w", kind, err)
	}
	return c, nil
}

func read[C Control](text []byte) (Control, error) {
	var c C
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, errors.New("a field is of the wrong kind")
	}
	return c, nil
}

// values checks the values of a frame against the schema.
func values(c Control) error {
	switch c := c.(type) {
	case Hello:
		if c.Proto != 1 && c.Proto != 2 || c.Role != "boat" && c.Role != "viewer" {
			return errors.New("proto or role is unknown")
		}
	case Welcome:
		if c.Proto != 1 && c.Proto != 2 {
			return errors.New("proto is unknown")
		}
	case Error:
		switch c.Code {
		case CodeAuth, CodeProto, CodeBoatOffline, CodeLimit:
		default:
			return errors.New("code is unknown")
		}
	case Viewers:
		if c.Count < 0 {
			return errors.New("count is negative")
		}
		return tags(append(append([]string{}, c.Attach...), c.Detach...)...)
	case Result:
		if c.ID != 0 || c.StatusCode != 429 && c.StatusCode != 503 {
			return errors.New("only a boat can send this result")
		}
	}
	return nil
}

func tags(all ...string) error {
	for _, s := range all {
		if _, err := ParseTag(s); err != nil {
			return err
		}
	}
	return nil
}
