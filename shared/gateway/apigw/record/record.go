// Package record is the format of the events in the ordered ingress queue between
// API Gateway and functions/message. API Gateway itself queues frames, with
// [Template]; functions/disconnect queues the end of a connection.
//
// The package imports nothing of AWS, so that the CDK stack can import the template.
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
	// Time is the time of the event, in milliseconds since 1970.
	Time int64 `json:"requestTimeEpoch"`

	// Body is the text of a frame in base64: a queue accepts neither an empty text nor
	// one with control characters.
	Body string `json:"body,omitempty"`
	// Binary says that API Gateway made that text from a binary frame, as base64.
	// Today it closes a connection that sends a binary frame.
	Binary bool `json:"isBase64Encoded,omitempty"`

	// Callback is the callback address of a connection of one of our own fronts
	// (package invoke). DomainName and Stage are then unused, Body is the base64 of the
	// frame's bytes, and Binary says whether the frame was binary or text.
	Callback string `json:"callback,omitempty"`
	// Oversize, if not 0, is the size of a frame that such a front did not forward
	// because it was over the limit.
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

// UnmarshalJSON accepts the time as a number or a string: [Template] writes strings,
// and Encode writes numbers.
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

// millis is a time in milliseconds. It may have a fraction or an exponent, as a template
// writes a floating-point number.
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

// Parse reads the body of a message of the ingress queue. It reports false if the body
// is no record.
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
