package agentknock

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func collect(data []byte) (map[string]string, error) {
	m := map[string]string{}
	err := members(data, func(name string, raw []byte) error {
		m[name] = string(raw)
		return nil
	})
	return m, err
}

func TestMembers(t *testing.T) {
	deep := strings.Repeat("[", 130_000) + strings.Repeat("]", 130_000)
	for _, c := range []struct {
		in   string
		want map[string]string // nil: not JSON
	}{
		{`{}`, map[string]string{}},
		{" \t\r\n{ } ", map[string]string{}},
		{`{"a":1,"b" : [ 1 , {"c":[]} ] }`, map[string]string{"a": "1", "b": `[ 1 , {"c":[]} ]`}},
		{`{"\u0061":"\ud800"}`, map[string]string{"a": `"\ud800"`}},
		{`{"p":{"x":1,"x":2,"n":1e999999,"f":0.10}}`, map[string]string{"p": `{"x":1,"x":2,"n":1e999999,"f":0.10}`}},
		{`{"p":` + deep + `}`, map[string]string{"p": deep}},
		{`{"p":` + strings.Repeat(`{"":`, 60_000) + "0" + strings.Repeat("}", 60_000) + `}`, map[string]string{"p": strings.Repeat(`{"":`, 60_000) + "0" + strings.Repeat("}", 60_000)}},
		{`{"p":` + deep[:len(deep)-1] + `}`, nil},
		{``, nil}, {`[]`, nil}, {`null`, nil}, {`"x"`, nil}, {`{`, nil}, {`{"a"}`, nil}, {`{"a":}`, nil}, {`{"a":1,}`, nil},
		{`{,}`, nil}, {`{"a":1 "b":2}`, nil}, {`{"a":1}}`, nil}, {`{"a":1} x`, nil}, {`{a:1}`, nil}, {`{'a':1}`, nil},
		{`{"a":01}`, nil}, {`{"a":+1}`, nil}, {`{"a":.5}`, nil}, {`{"a":1.}`, nil}, {`{"a":1e}`, nil}, {`{"a":-}`, nil}, {`{"a":NaN}`, nil},
		{`{"a":tru}`, nil}, {`{"a":truex}`, nil}, {`{"a":[1,]}`, nil}, {`{"a":[,1]}`, nil}, {`{"a":{"b":1,}}`, nil}, {`{"a":[}]}`, nil},
		{"{\"a\":\"\n\"}", nil}, {`{"a":"\x"}`, nil}, {`{"a":"\u12"}`, nil}, {`{"a":"\u12g4"}`, nil}, {`{"a":"`, nil}, {`{"a":"\`, nil},
		{"{\"a\":\"\xff\"}", nil}, {"\xef\xbb\xbf{}", nil}, {"{\"a\":1\x00}", nil},
	} {
		got, err := collect([]byte(c.in))
		short := c.in[:min(len(c.in), 60)]
		if c.want == nil {
			if !errors.Is(err, errNotJSON) {
				t.Errorf("%s is taken: %v", short, err)
			}
			continue
		}
		if err != nil || len(got) != len(c.want) {
			t.Errorf("%s: %d members, %v", short, len(got), err)
		}
		for name, raw := range c.want {
			if got[name] != raw {
				t.Errorf("%s: %s is %.60s", short, name, got[name])
			}
		}
	}
}

// Our reader takes exactly what encoding/json takes, as far as that goes.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{
		`{"type":"message","client_id":"01K2ENXDTW1P3XAR4J7V7C9D0H","payload":{"a":[1,2,{"b":null}],"c":"\u00e9"}}`,
		`{"a":-0.1e+5,"b":[],"c":{},"d":[[[]]],"e":true,"f":false}`, `{"":"\\\"\/\b\f\n\r\t"}`, `{"a":1}{"b":2}`, ` { } `,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > 9_000 {
			return // encoding/json stops at 10,000
		}
		whole := bytes.Clone(data)
		got, err := collect(data)
		if !bytes.Equal(data, whole) {
			t.Fatal("the frame was changed")
		}
		var want map[string]json.RawMessage
		valid := utf8.Valid(data) && json.Unmarshal(data, &want) == nil && want != nil
		if valid != (err == nil) {
			t.Fatalf("we say %v, encoding/json %v", err, valid)
		}
		if !valid {
			return
		}
		for name, raw := range want {
			if got[name] != string(raw) {
				t.Fatalf("%q is %q, encoding/json has %q", name, got[name], raw)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d members, encoding/json has %d", len(got), len(want))
		}
	})
}
