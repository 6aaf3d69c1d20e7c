package skald

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const someID = "00000000-0000-4000-8000-000000000001"

func TestParsePayload(t *testing.T) {
	envelope := `"v":1,"kind":"hello","id":"` + someID + `","ts":1750000000000`
	for _, c := range []struct {
		name, doc string
		body      string
		ok        bool
	}{
		{"bare", `{` + envelope + `}`, ``, true},
		{"with members", `{` + envelope + `,"b":[1, 2],"a":{"x":null}}`, `{"b":[1,2],"a":{"x":null}}`, true},
		{"members first", `{"b":"<&>",` + envelope + `}`, `{"b":"<&>"}`, true},
		{"unknown kind", strings.Replace(`{`+envelope+`}`, "hello", "dance", 1), ``, true},
		{"white space", " {\n" + envelope + "\n} ", ``, true},
		{"upper case id", strings.Replace(`{`+envelope+`}`, "4000", "4ABC", 1), ``, true},
		{"other case is another member", `{` + envelope + `,"KIND":"x"}`, `{"KIND":"x"}`, true},
		{"nothing", ``, ``, false},
		{"an array", `[` + envelope + `]`, ``, false},
		{"null", `null`, ``, false},
		{"version 2", strings.Replace(`{`+envelope+`}`, `"v":1`, `"v":2`, 1), ``, false},
		{"version 1.0", strings.Replace(`{`+envelope+`}`, `"v":1`, `"v":1.0`, 1), ``, false},
		{"version as string", strings.Replace(`{`+envelope+`}`, `"v":1`, `"v":"1"`, 1), ``, false},
		{"no version", strings.Replace(`{`+envelope+`}`, `"v":1,`, ``, 1), ``, false},
		{"no kind", strings.Replace(`{`+envelope+`}`, `"kind":"hello",`, ``, 1), ``, false},
		{"empty kind", strings.Replace(`{`+envelope+`}`, `hello`, ``, 1), ``, false},
		{"kind is null", strings.Replace(`{`+envelope+`}`, `"hello"`, `null`, 1), ``, false},
		{"UUID v1", strings.Replace(`{`+envelope+`}`, "4000", "1000", 1), ``, false},
		{"UUID of another variant", strings.Replace(`{`+envelope+`}`, "8000", "7000", 1), ``, false},
		{"id too long", strings.Replace(`{`+envelope+`}`, someID, someID+"0", 1), ``, false},
		{"ts with fraction", strings.Replace(`{`+envelope+`}`, "1750000000000", "1750000000000.5", 1), ``, false},
		{"ts with exponent", strings.Replace(`{`+envelope+`}`, "1750000000000", "1.75e12", 1), ``, false},
		{"ts negative", strings.Replace(`{`+envelope+`}`, "1750000000000", "-1", 1), ``, false},
		{"ts too large", strings.Replace(`{`+envelope+`}`, "1750000000000", "9223372036854775808", 1), ``, false},
		{"kind twice", `{` + envelope + `,"kind":"logout"}`, ``, false},
		{"member twice", `{` + envelope + `,"a":1,"a":2}`, ``, false},
		{"two documents", `{` + envelope + `}{}`, ``, false},
		{"cut short", `{` + envelope, ``, false},
		{"not UTF-8", `{` + envelope + `,"a":"` + "\xff" + `"}`, ``, false},
	} {
		p, err := ParsePayload([]byte(c.doc))
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !c.ok {
			if !errors.Is(err, ErrPayload) {
				t.Errorf("%s: %v is no ErrPayload", c.name, err)
			}
			continue
		}
		if string(p.Body) != c.body || p.TS != 1750000000000 {
			t.Errorf("%s: body %s, ts %d", c.name, p.Body, p.TS)
		}
		doc, err := p.Marshal()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		again, err := ParsePayload(doc)
		if err != nil || again.String() != p.String() || !bytes.Equal(again.Body, p.Body) {
			t.Errorf("%s: came back as %v with %s: %v", c.name, again, again.Body, err)
		}
	}
}

func TestNewPayload(t *testing.T) {
	now := time.UnixMilli(1750000000000)
	type body struct {
		Badge int    `json:"badge"`
		Text  string `json:"text"`
	}
	p, err := NewPayload(bytes.NewReader(make([]byte, 16)), now, KindInboxUpdate, body{3, "a<b"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"v":1,"kind":"inbox_update","id":"00000000-0000-4000-8000-000000000000","ts":1750000000000,"badge":3,"text":"a<b"}`
	if string(doc) != want {
		t.Errorf("got  %s\nwant %s", doc, want)
	}
	var b body
	if err := p.Decode(&b); err != nil || b != (body{3, "a<b"}) {
		t.Errorf("decoded to %v: %v", b, err)
	}
	if s := fmt.Sprintf("%v %+v", p, Message{Payload: p}); strings.Contains(s, "a<b") {
		t.Errorf("shows its content: %s", s)
	}
	for name, bad := range map[string]any{
		"no object":       []int{1},
		"a string":        "x",
		"kind in body":    map[string]any{"kind": "logout"},
		"raw but no JSON": json.RawMessage("{"),
		"a channel":       make(chan int),
	} {
		if _, err := NewPayload(rand.Reader, now, KindHello, bad); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	var none *body
	if p, err := NewPayload(rand.Reader, now, KindHello, none); err != nil || p.Body != nil {
		t.Errorf("nil pointer: body %s, %v", p.Body, err)
	}
}

func TestAck(t *testing.T) {
	p, err := NewAck(rand.Reader, time.Now(), someID)
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := p.AckedID(); !ok || id != someID || p.ID == someID {
		t.Errorf("acknowledges %q (%v) as %s", id, ok, p.ID)
	}
	p.Kind = KindHello
	if _, ok := p.AckedID(); ok {
		t.Error("a hello acknowledges something")
	}
}

func TestPayloadFreshness(t *testing.T) {
	now := time.UnixMilli(1750000000000)
	for d, want := range map[time.Duration]bool{
		0:                             true,
		7 * 24 * time.Hour:            true,
		-7 * 24 * time.Hour:           true,
		7*24*time.Hour + time.Second:  false,
		-7*24*time.Hour - time.Second: false,
		-200 * 365 * 24 * time.Hour:   false,
	} {
		p := Payload{TS: now.UnixMilli()}
		if got := p.Fresh(now.Add(d)); got != want {
			t.Errorf("%v later: %v", d, got)
		}
	}
}

func TestKindsHaveSenders(t *testing.T) {
	for k, want := range map[Kind][2]bool{ // agent, client
		KindInboxUpdate:      {true, false},
		KindNotification:     {true, false},
		KindHello:            {false, true},
		KindInboxRequest:     {false, true},
		KindApprovalResponse: {false, true},
		KindLogout:           {false, true},
		KindAck:              {true, true},
		"dance":              {false, false},
	} {
		if got := [2]bool{k.SentBy(RoleAgent), k.SentBy(RoleClient)}; got != want {
			t.Errorf("%s: %v", k, got)
		}
	}
}

func TestUUID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, err := NewUUID(bytes.NewReader(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "chance")))
		if err != nil || !uuidV4.MatchString(id) || id != strings.ToLower(id) {
			t.Fatalf("%s: %v", id, err)
		}
	})
}

func FuzzParsePayload(f *testing.F) {
	f.Add([]byte(`{"v":1,"kind":"hello","id":"` + someID + `","ts":1}`))
	f.Add([]byte(`{"v":1,"kind":"ack","id":"` + someID + `","ts":1,"ref_id":"x","a":[{"b":1e9}]}`))
	f.Add([]byte(`{"v":1,"kind":"\ud800","id":"` + someID + `","ts":1}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := ParsePayload(doc)
		if err != nil {
			if !errors.Is(err, ErrPayload) {
				t.Fatalf("%v is no ErrPayload", err)
			}
			return
		}
		out, err := p.Marshal()
		if err != nil {
			t.Fatalf("parsed but does not marshal: %v", err)
		}
		again, err := ParsePayload(out)
		if err != nil || again.String() != p.String() || !bytes.Equal(again.Body, p.Body) {
			t.Fatalf("%q came back as %q: %v", doc, out, err)
		}
	})
}
