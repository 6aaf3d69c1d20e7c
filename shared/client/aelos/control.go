package aelos

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// fields are the required and then the optional fields of a control frame, and read reads
// them.
type fields struct {
	must, may []string
	read      func([]byte) (Control, error)
}

var schema = map[string]fields{
	"hello":       {must: []string{"proto", "role", "token"}, read: read[Hello]},
	"welcome":     {must: []string{"proto"}, read: read[Welcome]},
	"error":       {must: []string{"code"}, may: []string{"msg"}, read: read[Error]},
	"viewers":     {must: []string{"count"}, may: []string{"attach", "detach"}, read: read[Viewers]},
	"boat-status": {must: []string{"online"}, read: read[BoatStatus]},
	"hs1":         {must: []string{"vs", "e"}, read: read[Hs1]},
	"hs2":         {must: []string{"vs", "e", "s"}, read: read[Hs2]},
	"result":      {must: []string{"id", "statusCode", "message"}, read: read[Result]},
	"ping":        {read: read[Ping]},
	"pong":        {read: read[Pong]},
}

// check compares the fields of a frame with the schema, which allows no other fields and
// no null.
func (f fields) check(got map[string]json.RawMessage) error {
	for _, name := range f.must {
		if _, ok := got[name]; !ok {
			return fmt.Errorf("field %q is missing", name)
		}
	}
	for name, v := range got {
		if !slices.Contains(f.must, name) && !slices.Contains(f.may, name) {
			return errors.New("there are fields that it should not have")
		}
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
	c, err := want.read(text)
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
		for _, s := range slices.Concat(c.Attach, c.Detach) {
			if _, err := ParseTag(s); err != nil {
				return err
			}
		}
	case Result:
		if c.ID != 0 || c.StatusCode != 429 && c.StatusCode != 503 {
			return errors.New("only a boat can send this result")
		}
	}
	return nil
}
