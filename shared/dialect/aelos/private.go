package aelos

import (
	"encoding/binary"
	"strings"
	"time"

	"blindpost/shared/relay"
)

// private is what the record of a connection says about an admitted peer.
type private struct {
	role    string
	proto   int
	group   string
	sub     string
	ctl     bool
	expires time.Time
	// hello is the id of the frame that admitted it, which may be delivered again.
	hello string
	// counted says that the connection is counted as joined.
	counted bool
}

// The stored form is decoded with every frame, so it has fixed offsets instead of JSON: a
// byte of flags, the version of the protocol, when the token expires, the group, the
// user (see subOf), the id of the hello.
const (
	flagViewer = 1 << iota
	flagCtl
	flagCounted
)

const (
	expiresAt = 2
	groupAt   = expiresAt + 8
	groupLen  = len(Partition) + 64
	subAt     = groupAt + groupLen
	subLen    = 16
	helloAt   = subAt + subLen
)

// privateOf decodes the record of a connection; false if the peer is not admitted yet.
func privateOf(c *relay.Conn) (private, bool) {
	b := c.Private
	if len(b) < helloAt {
		return private{}, false
	}
	p := private{
		role: roleBoat, proto: int(b[1]), ctl: b[0]&flagCtl != 0, counted: b[0]&flagCounted != 0,
		expires: time.Unix(int64(binary.BigEndian.Uint64(b[expiresAt:])), 0),
		group:   string(b[groupAt:subAt]), sub: string(b[subAt:helloAt]), hello: string(b[helloAt:]),
	}
	if b[0]&flagViewer != 0 {
		p.role = roleViewer
	}
	return p, strings.HasPrefix(p.group, Partition)
}

func (p private) put(c *relay.Conn) {
	b := make([]byte, groupAt, helloAt+len(p.hello))
	if p.role == roleViewer {
		b[0] |= flagViewer
	}
	if p.ctl {
		b[0] |= flagCtl
	}
	if p.counted {
		b[0] |= flagCounted
	}
	b[1] = byte(p.proto)
	binary.BigEndian.PutUint64(b[expiresAt:], uint64(p.expires.Unix()))
	c.Private = append(append(append(b, p.group...), p.sub...), p.hello...)
}
