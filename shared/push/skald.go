package push

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxText is the largest size in bytes of a title and of a body. Even if every
// byte had to be escaped, a wake with both would fit into MaxPayload.
const MaxText = 256

// ErrText says that a title or a body is not allowed in a push.
var ErrText = errors.New("push title and body must be valid UTF-8 of at most 256 bytes")

// Text is the text that a phone shows for a push. It is the same for all messages, so it
// reveals nothing about them.
type Text struct {
	Title string
	Body  string
}

// Validate checks that the text fits into every push.
func (t Text) Validate() error {
	for _, s := range []string{t.Title, t.Body} {
		if len(s) > MaxText || !utf8.ValidString(s) {
			return ErrText
		}
	}
	return nil
}

// SkaldMessage is a stored Skald message for a phone.
type SkaldMessage struct {
	Namespace  [32]byte
	From       [32]byte // Ed25519 key of the sender
	Nonce      []byte
	Ciphertext []byte
}

// SkaldPayload builds the finished payload of a push for m. It contains the message if it
// then has at most MaxPayload bytes, otherwise it only wakes the app. The payloads are,
// without any white space, for IOS the body of an APNs request,
//
//	{"aps":{"alert":{"title":T,"body":B},"badge":1,"sound":"default","mutable-content":1,"category":"skald_inbox"},
//	 "d":{"ns":HEX,"from":HEX,"n":HEX,"c":BASE64}}
//	{"aps":{"alert":{"title":T,"body":B},"badge":1,"sound":"default","content-available":1},
//	 "d":{"ns":HEX,"wake":true}}
//
// and for Android, where the app makes its own text, an FCM data message inside the two
// objects that SNS requires; the limit applies to all of it:
//
//	{"fcmV1Message":{"message":{"data":{"ns":HEX,"from":HEX,"n":HEX,"c":BASE64},"android":{"priority":"high"}}}}
//	{"fcmV1Message":{"message":{"data":{"ns":HEX,"wake":"true"},"android":{"priority":"high"}}}}
//
// HEX is lowercase, BASE64 the standard alphabet with padding. T and B are JSON strings
// with only the escapes that JSON requires (and U+2028 and U+2029, which package
// encoding/json always escapes).
func SkaldPayload(p Platform, m SkaldMessage, text Text) ([]byte, Kind, error) {
	// Most messages that do not fit are far too large: do not encode these.
	if base64.StdEncoding.EncodedLen(len(m.Ciphertext))+hex.EncodedLen(len(m.Nonce)) < MaxPayload {
		payload, err := skaldPayload(p, text, m.content(), Content)
		if err != nil {
			return nil, 0, err
		}
		if len(payload) <= MaxPayload {
			return payload, Content, nil
		}
	}
	payload, err := SkaldWake(p, m.Namespace, text)
	if err != nil {
		return nil, 0, err
	}
	return payload, Wake, nil
}

// SkaldWake builds the finished payload of a push that only wakes the app; see
// [SkaldPayload].
func SkaldWake(p Platform, ns [32]byte, text Text) ([]byte, error) {
	d := skaldWake{NS: hex.EncodeToString(ns[:]), Wake: true}
	if p == Android {
		d.Wake = "true" // FCM takes only strings as data
	}
	return skaldPayload(p, text, d, Wake)
}

// skaldPayload puts the data of a push into the payload of its provider.
func skaldPayload(p Platform, text Text, data any, kind Kind) ([]byte, error) {
	if err := text.Validate(); err != nil {
		return nil, err
	}
	switch p {
	case IOS:
		a := aps{Alert: apsAlert(text), Badge: 1, Sound: "default"}
		if kind == Content {
			a.MutableContent, a.Category = 1, "skald_inbox"
		} else {
			a.ContentAvailable = 1
		}
		return encode(apnsPayload{APS: a, D: data})
	case Android:
		return encode(fcmPayload{FCM: fcmV1{Message: fcmMessage{Data: data, Android: fcmAndroid{Priority: "high"}}}})
	default:
		return nil, fmt.Errorf("failed to build a push payload: unknown platform %d", p)
	}
}

// The payloads; the order of the fields is the order on the wire.
type (
	apnsPayload struct {
		APS aps `json:"aps"`
		D   any `json:"d"`
	}
	aps struct {
		Alert            apsAlert `json:"alert"`
		Badge            int      `json:"badge"`
		Sound            string   `json:"sound"`
		MutableContent   int      `json:"mutable-content,omitempty"`
		Category         string   `json:"category,omitempty"`
		ContentAvailable int      `json:"content-available,omitempty"`
	}
	apsAlert struct {
		Title string `json:"title"`
		Body  string `json:"body"`
	}
	skaldContent struct {
		NS         string `json:"ns"`
		From       string `json:"from"`
		Nonce      string `json:"n"`
		Ciphertext []byte `json:"c"` // encoding/json makes standard base64 of it
	}
	skaldWake struct {
		NS   string `json:"ns"`
		Wake any    `json:"wake"`
	}
	fcmPayload struct {
		FCM fcmV1 `json:"fcmV1Message"`
	}
	fcmV1 struct {
		Message fcmMessage `json:"message"`
	}
	fcmMessage struct {
		Data    any        `json:"data"`
		Android fcmAndroid `json:"android"`
	}
	fcmAndroid struct {
		Priority string `json:"priority"`
	}
)

func (m SkaldMessage) content() skaldContent {
	c := m.Ciphertext
	if c == nil {
		c = []byte{} // nil would become null
	}
	return skaldContent{
		NS:         hex.EncodeToString(m.Namespace[:]),
		From:       hex.EncodeToString(m.From[:]),
		Nonce:      hex.EncodeToString(m.Nonce),
		Ciphertext: c,
	}
}

// encode makes JSON without white space and without escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("failed to encode a push payload: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
