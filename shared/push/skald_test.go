package push_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blindpost/shared/push"
)

// message has a namespace of bytes 0xab, a sender of 0xcd and the nonce 00..0b.
func message(ciphertext []byte) push.SkaldMessage {
	return push.SkaldMessage{
		Namespace:  [32]byte(bytes.Repeat([]byte{0xab}, 32)),
		From:       [32]byte(bytes.Repeat([]byte{0xcd}, 32)),
		Nonce:      []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		Ciphertext: ciphertext,
	}
}

var (
	ns   = strings.Repeat("ab", 32)
	from = strings.Repeat("cd", 32)
	text = push.Text{Title: "Skald", Body: "Action required"}
)

const nonce = "000102030405060708090a0b"

func TestSkaldPayloadBytes(t *testing.T) {
	small, large := []byte{0xfb, 0xff, 0xfe, 0}, make([]byte, 65_000)
	tests := []struct {
		name       string
		platform   push.Platform
		ciphertext []byte
		text       push.Text
		kind       push.Kind
		want       string
	}{
		{"APNs content", push.IOS, small, text, push.Content,
			`{"aps":{"alert":{"title":"Skald","body":"Action required"},"badge":1,"sound":"default","mutable-content":1,"category":"skald_inbox"},` +
				`"d":{"ns":"` + ns + `","from":"` + from + `","n":"` + nonce + `","c":"+//+AA=="}}`},
		{"APNs wake", push.IOS, large, text, push.Wake,
			`{"aps":{"alert":{"title":"Skald","body":"Action required"},"badge":1,"sound":"default","content-available":1},` +
				`"d":{"ns":"` + ns + `","wake":true}}`},
		{"FCM content", push.Android, small, text, push.Content,
			`{"fcmV1Message":{"message":{"data":{"ns":"` + ns + `","from":"` + from + `","n":"` + nonce + `","c":"+//+AA=="},"android":{"priority":"high"}}}}`},
		{"FCM wake", push.Android, large, text, push.Wake,
			`{"fcmV1Message":{"message":{"data":{"ns":"` + ns + `","wake":"true"},"android":{"priority":"high"}}}}`},
		{"text that looks like HTML and JSON", push.IOS, large, push.Text{Title: `<b>&"\`, Body: "zwölf\n"}, push.Wake,
			`{"aps":{"alert":{"title":"<b>&\"\\","body":"zwölf\n"},"badge":1,"sound":"default","content-available":1},` +
				`"d":{"ns":"` + ns + `","wake":true}}`},
		{"no text, no ciphertext", push.IOS, nil, push.Text{}, push.Content,
			`{"aps":{"alert":{"title":"","body":""},"badge":1,"sound":"default","mutable-content":1,"category":"skald_inbox"},` +
				`"d":{"ns":"` + ns + `","from":"` + from + `","n":"` + nonce + `","c":""}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, kind, err := push.SkaldPayload(tt.platform, message(tt.ciphertext), tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want || kind != tt.kind {
				t.Errorf("got %s\n%s\nwant %s\n%s", kind, got, tt.kind, tt.want)
			}
			wake, err := push.SkaldWake(tt.platform, message(nil).Namespace, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if (string(wake) == tt.want) != (tt.kind == push.Wake) {
				t.Errorf("SkaldWake says %s", wake)
			}
		})
	}
}

// On APNs the title sets the size to the byte.
func TestSkaldAPNsLimit(t *testing.T) {
	empty, _, err := push.SkaldPayload(push.IOS, message(nil), push.Text{})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{4095, 4096, 4097} {
		room := size - len(empty)
		ciphertext := make([]byte, (room-4)/4*3)
		title := strings.Repeat("t", room-len(ciphertext)/3*4)
		got, kind, err := push.SkaldPayload(push.IOS, message(ciphertext), push.Text{Title: title})
		if err != nil {
			t.Fatal(err)
		}
		if size <= 4096 {
			if kind != push.Content || len(got) != size {
				t.Errorf("content of %d bytes became %s of %d bytes", size, kind, len(got))
			}
		} else if kind != push.Wake || !bytes.Contains(got, []byte(`"wake":true`)) {
			t.Errorf("content of %d bytes became %s of %d bytes", size, kind, len(got))
		}
	}
}

// On FCM the size moves in steps: 4 with the ciphertext, 2 with the nonce.
func TestSkaldFCMLimit(t *testing.T) {
	empty, _, err := push.SkaldPayload(push.Android, message(nil), text)
	if err != nil {
		t.Fatal(err)
	}
	parity := len(empty) % 2
	for _, size := range []int{4094 + parity, 4096 + parity, 4098 + parity} {
		room := size - len(empty)
		m := message(make([]byte, room/4*3))
		m.Nonce = append(m.Nonce, make([]byte, room%4/2)...)
		got, kind, err := push.SkaldPayload(push.Android, m, text)
		if err != nil {
			t.Fatal(err)
		}
		if fits := size <= 4096; fits != (kind == push.Content) || fits && len(got) != size {
			t.Errorf("content of %d bytes became %s of %d bytes", size, kind, len(got))
		}
	}
}

func TestSkaldPayloadRefuses(t *testing.T) {
	tests := []struct {
		name     string
		platform push.Platform
		text     push.Text
		want     error
	}{
		{"no platform", 0, text, nil},
		{"unknown platform", 3, text, nil},
		{"title too long", push.IOS, push.Text{Title: strings.Repeat("t", 257)}, push.ErrText},
		{"body too long", push.Android, push.Text{Body: strings.Repeat("t", 257)}, push.ErrText},
		{"title not UTF-8", push.IOS, push.Text{Title: "\xff"}, push.ErrText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, kind, err := push.SkaldPayload(tt.platform, message(nil), tt.text)
			if err == nil || got != nil || kind != 0 {
				t.Fatalf("got %s, %s, %v", kind, got, err)
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error is %v", err)
			}
			if wake, err := push.SkaldWake(tt.platform, [32]byte{}, tt.text); err == nil {
				t.Errorf("SkaldWake says %s", wake)
			}
		})
	}
}

// Whatever comes in: the payload fits, is JSON, and has the message in it
// unchanged, or nothing of it; and a wake means that it would not have fitted.
func TestSkaldPayloadAlwaysFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.StringOfN(rapid.RuneFrom([]rune{'a', '"', '\\', '<', 0, 0x1f, 0x7f, 'ö', 0x2028, 0xfffd, 0x1f600}), 0, 64, push.MaxText)
		m := push.SkaldMessage{
			Namespace:  [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "ns")),
			From:       [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "from")),
			Nonce:      rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "nonce"),
			Ciphertext: bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, rapid.OneOf(rapid.IntRange(0, 70_000), rapid.IntRange(1500, 3100)).Draw(t, "size")),
		}
		p := rapid.SampledFrom([]push.Platform{push.IOS, push.Android}).Draw(t, "platform")
		txt := push.Text{Title: words.Draw(t, "title"), Body: words.Draw(t, "body")}
		got, kind, err := push.SkaldPayload(p, m, txt)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 4096 {
			t.Fatalf("%s payload of %d bytes", kind, len(got))
		}
		var v struct {
			APS struct {
				Alert struct{ Title, Body string }
			}
			D   map[string]any
			FCM struct {
				Message struct{ Data map[string]any }
			} `json:"fcmV1Message"`
		}
		if err := json.Unmarshal(got, &v); err != nil {
			t.Fatal(err)
		}
		d := v.D
		if p == push.Android {
			d = v.FCM.Message.Data
		} else if v.APS.Alert.Title != txt.Title || v.APS.Alert.Body != txt.Body {
			t.Errorf("text became %q", v.APS.Alert)
		}
		if d["ns"] != hex.EncodeToString(m.Namespace[:]) {
			t.Errorf("ns is %v", d["ns"])
		}
		if kind == push.Wake {
			if len(d) != 2 {
				t.Errorf("wake has %d members", len(d))
			}
			// What the content would have added to this payload at least.
			more := len(m.Ciphertext)*4/3 + 2*len(m.Nonce) + 64 + len(`,"from":"","n":"","c":""`) - len(`,"wake":"true"`)
			if len(got)+more+64 < 4096 {
				t.Errorf("wake although the content would have fitted: %d bytes and %d more", len(got), more)
			}
			return
		}
		c, err := base64.StdEncoding.DecodeString(d["c"].(string))
		if err != nil || !bytes.Equal(c, m.Ciphertext) || d["n"] != hex.EncodeToString(m.Nonce) || d["from"] != hex.EncodeToString(m.From[:]) {
			t.Errorf("the message changed on its way")
		}
	})
}

func BenchmarkSkaldPayload(b *testing.B) {
	for _, size := range []int{1000, 65_000} {
		m := message(make([]byte, size))
		b.Run(map[int]string{1000: "content", 65_000: "wake"}[size], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := push.SkaldPayload(push.IOS, m, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
