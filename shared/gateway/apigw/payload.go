package apigw

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"blindpost/shared/gateway"
)

// encoding is the base64 of binary messages: the standard alphabet with padding.
var encoding = base64.StdEncoding.Strict()

var errNotUTF8 = errors.New("text message is not valid UTF-8")

// encodedLen is the length of a message on this front.
func encodedLen(m gateway.Message) int {
	if m.Text {
		return len(m.Data)
	}
	return encoding.EncodedLen(len(m.Data))
}

// encode makes the text that carries a message.
func encode(m gateway.Message) ([]byte, error) {
	if m.Text {
		if !utf8.Valid(m.Data) {
			return nil, errNotUTF8
		}
		return m.Data, nil
	}
	out := make([]byte, encoding.EncodedLen(len(m.Data)))
	encoding.Encode(out, m.Data)
	return out, nil
}

// decode returns the message of a peer: a binary one if the text is base64, otherwise
// the text itself.
func decode(text string) (data []byte, isText bool) {
	if strings.ContainsAny(text, "\r\n") { // which the decoder would skip
		return []byte(text), true
	}
	data, err := encoding.DecodeString(text)
	if err != nil {
		return []byte(text), true
	}
	return data, false
}
