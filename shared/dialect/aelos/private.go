package aelos

import (
	"encoding/json"
	"time"

	"blindpost/shared/relay"
)

// private is what the record of a connection says about an admitted peer.
type private struct {
	role    string
	proto   int
	group   string
	ctl     bool
	expires time.Time
	// hello is the frame that it was admitted by, should it come again.
	hello string
	// counted says that the connection is counted as joined.
	counted bool
}

// record is the stored form of private.
type record struct {
	Role    string `json:"r"`
	Proto   int    `json:"p"`
	Group   string `json:"g"`
	Ctl     bool   `json:"c,omitempty"`
	Expires int64  `json:"x"`
	Hello   string `json:"h,omitempty"`
	Counted bool   `json:"n,omitempty"`
}

// privateOf reads it; false if the peer is not admitted yet.
func privateOf(c *relay.Conn) (private, bool) {
	var r record
	if c.Private == nil || json.Unmarshal(c.Private, &r) != nil {
		return private{}, false
	}
	return private{
		role: r.Role, proto: r.Proto, group: r.Group, ctl: r.Ctl,
		expires: time.Unix(r.Expires, 0), hello: r.Hello, counted: r.Counted,
	}, true
}

func (p private) put(c *relay.Conn) error {
	b, err := json.Marshal(record{
		Role: p.role, Proto: p.proto, Group: p.group, Ctl: p.ctl,
		Expires: p.expires.Unix(), Hello: p.hello, Counted: p.counted,
	})
	c.Private = b
	return err
}
