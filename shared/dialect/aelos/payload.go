package aelos

import (
	"encoding/hex"
	"errors"
	"strings"
	"sync"
)

// Types of payload frames (section 4).
const (
	typeSnapshot = 0x01 // boat to viewer
	typeCommand  = 0x02 // viewer to boat
	typeResult   = 0x03 // boat to viewer
	typeIdentify = 0x04 // viewer to boat
)

const (
	tagSize     = 4
	counterSize = 8
	// A frame on the boat's leg begins with type, tag and counter, on the viewer's
	// with type and counter. The rest is ciphertext, which the relay does not read.
	minTagged   = 1 + tagSize + counterSize
	minUntagged = 1 + counterSize
)

// tag names one connection of a viewer to the boat.
type tag [tagSize]byte

func (t tag) String() string { return hex.EncodeToString(t[:]) }

// MarshalText and UnmarshalText are for the roster.
func (t tag) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func (t *tag) UnmarshalText(b []byte) error {
	v, ok := parseTag(string(b))
	if !ok {
		return errors.New("tag is not eight lowercase hex digits")
	}
	*t = v
	return nil
}

// parseTag reads the form that tags have in JSON: eight lowercase hex digits.
func parseTag(s string) (t tag, ok bool) {
	if len(s) != 2*tagSize || strings.Trim(s, "0123456789abcdef") != "" {
		return tag{}, false
	}
	_, err := hex.Decode(t[:], []byte(s))
	return t, err == nil
}

// Kinds of frames, as they are counted.
const (
	kindSnapshot    = "snapshot"
	kindCommand     = "command"
	kindResult      = "result"
	kindIdentify    = "identify"
	kindUndecodable = "undecodable"
	kindUnexpected  = "unexpected"
	kindOversize    = "oversize"
)

// kindOf names the type of a payload frame. One that is too short for its leg is
// undecodable.
func kindOf(b []byte, tagged bool) string {
	least := minUntagged
	if tagged {
		least = minTagged
	}
	if len(b) < least {
		return kindUndecodable
	}
	switch b[0] {
	case typeSnapshot:
		return kindSnapshot
	case typeCommand:
		return kindCommand
	case typeResult:
		return kindResult
	case typeIdentify:
		return kindIdentify
	}
	return kindUndecodable
}

// tagOf is the tag of a frame on the boat's leg.
func tagOf(b []byte) tag { return tag(b[1 : 1+tagSize]) }

// withoutTag calls f with the frame as it is on the viewer's leg. It moves the type
// to where the tag ends and back again afterwards, so that nothing is copied.
func withoutTag(b []byte, f func([]byte) error) error {
	last := b[tagSize]
	b[tagSize] = b[0]
	defer func() { b[tagSize] = last }()
	return f(b[tagSize:])
}

// tagBuffers are the buffers of withTag. There are few, because commands are rare.
var tagBuffers = sync.Pool{New: func() any { return new([]byte) }}

// withTag calls f with the frame as it is on the boat's leg.
func withTag(t tag, b []byte, f func([]byte) error) error {
	buf, _ := tagBuffers.Get().(*[]byte)
	out := append((*buf)[:0], b[0])
	out = append(out, t[:]...)
	out = append(out, b[1:]...)
	err := f(out)
	*buf = out
	tagBuffers.Put(buf)
	return err
}
