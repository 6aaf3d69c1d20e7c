// Package record is the form in which what happens to a connection waits in
// the ordered ingress queue, between API Gateway and the function that handles
// it. Frames are put there by API Gateway itself, by way of [Template]; the end
// of a connection by functions/disconnect.
//
// The package imports nothing of AWS, so that the stack can take the template
// from here.
package record

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The events, in the words of API Gateway.
const (
	Message    = "MESSAGE"
	Disconnect = "DISCONNECT"
)

// Record is one event of one connection.
type Record struct {
	Event        string `json:"event"`
	ConnectionID string `json:"connectionId"`
	// DomainName and Stage make the callback address, as in the events of API
	// Gateway.
	DomainName string `json:"domainName"`
	Stage      string `json:"stage"`
	// MessageID is API Gateway's id of a frame, the same on every delivery.
	MessageID string `json:"messageId,omitempty"`
	// Time is when it happened, in milliseconds since 1970.
	Time int64 `json:"requestTimeEpoch"`

	// Body is the text of a frame in base64, always: a queue takes neither an
	// empty text nor one with control characters.
	Body string `json:"body,omitempty"`
	// Binary says that API Gateway has made that text out of a binary frame, as
	// base64. Today it closes a connection that sends one.
	Binary bool `json:"isBase64Encoded,omitempty"`

	// Callback is set for a connection of a front of our own (package invoke): the
	// address that takes calls about it. DomainName and Stage are then of no use,
	// Body is the base64 of the frame's bytes themselves, and Binary says what kind of
	// frame it was.
	Callback string `json:"callback,omitempty"`
	// Oversize, if not 0, is the size of a frame that such a front has not carried,
	// because it is over its limit.
	Oversize int64 `json:"oversize,omitempty"`

	// Code and Reason are those of a disconnect.
	Code   int64  `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Text is the text of the frame.
func (r *Record) Text() (string, error) {
	b, err := base64.StdEncoding.DecodeString(r.Body)
	if err != nil {
		return "", errors.New("body of a record is not base64") // the error itself would quote it
	}
	return string(b), nil
}

// UnmarshalJSON takes a time as a number or as a string: [Template] makes a string of
// whatever API Gateway has, and the rest of this code writes numbers.
func (r *Record) UnmarshalJSON(b []byte) error {
	type fields Record
	in := struct {
		*fields
		Time millis `json:"requestTimeEpoch"`
	}{fields: (*fields)(r)}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	r.Time = int64(in.Time)
	return nil
}

// millis is a time in milliseconds. A decimal fraction or an exponent is what a
// template makes of a floating-point number.
type millis int64

func (m *millis) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*m = millis(n)
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(math.Abs(f) < 1<<53) {
		return errors.New("time of a record is not a number of milliseconds")
	}
	*m = millis(f)
	return nil
}

// Parse reads the body of a message of the ingress queue. It reports false if
// that is no record of a connection.
func Parse(body string) (*Record, bool, error) {
	var r Record
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		return nil, false, errors.New("failed to decode a record: not JSON of the right form")
	}
	switch r.Event {
	case Message, Disconnect:
		return &r, true, nil
	case "":
		return nil, false, nil
	default:
		return nil, false, fmt.Errorf("failed to decode a record: unknown event %.20q", r.Event)
	}
}

// Encode makes the body of a message of the ingress queue.
func (r *Record) Encode() (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("failed to encode a record: %w", err)
	}
	return string(b), nil
}
