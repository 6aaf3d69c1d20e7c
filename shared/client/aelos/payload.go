package aelos

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// Type is the first byte of a payload frame (section 4).
type Type byte

// The types.
const (
	Snapshot Type = 0x01 // boat to viewer
	Command  Type = 0x02 // viewer to boat
	Outcome  Type = 0x03 // boat to viewer: the boat's answer to a command
	Identify Type = 0x04 // viewer to boat
)

func (t Type) fromBoat() bool   { return t == Snapshot || t == Outcome }
func (t Type) fromViewer() bool { return t == Command || t == Identify }

// Tag identifies an attached viewer. The relay assigns it.
type Tag [4]byte

func (t Tag) String() string { return hex.EncodeToString(t[:]) }

// ParseTag reads a tag in its JSON form: 8 lowercase hex digits.
func ParseTag(s string) (Tag, error) {
	var t Tag
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(t) || hex.EncodeToString(b) != s {
		return t, fmt.Errorf("%.20q is no tag", s)
	}
	return Tag(b), nil
}

// Sizes of the headers before the ciphertext.
const (
	UntaggedHeader = 1 + 8
	TaggedHeader   = 1 + 4 + 8
)

var errShort = errors.New("payload frame is too short")

// AppendTagged appends the beginning of a frame between boat and relay.
func AppendTagged(dst []byte, t Type, tag Tag, counter uint64) []byte {
	return binary.BigEndian.AppendUint64(append(append(dst, byte(t)), tag[:]...), counter)
}

// AppendUntagged appends the beginning of a frame between viewer and relay.
func AppendUntagged(dst []byte, t Type, counter uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, byte(t)), counter)
}

// SplitTagged splits a frame between boat and relay.
func SplitTagged(frame []byte) (t Type, tag Tag, counter uint64, ciphertext []byte, err error) {
	if len(frame) < TaggedHeader {
		return 0, tag, 0, nil, errShort
	}
	return Type(frame[0]), Tag(frame[1:5]), binary.BigEndian.Uint64(frame[5:]), frame[TaggedHeader:], nil
}

// SplitUntagged splits a frame between viewer and relay.
func SplitUntagged(frame []byte) (t Type, counter uint64, ciphertext []byte, err error) {
	if len(frame) < UntaggedHeader {
		return 0, 0, nil, errShort
	}
	return Type(frame[0]), binary.BigEndian.Uint64(frame[1:]), frame[UntaggedHeader:], nil
}
