package agentknock

import (
	"testing"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/table"
)

// The first request of a pairing makes the client. A completion that has seen no client
// yet, and then the exchange, is counted all the same.
func TestClientThatComesBetweenTwoReads(t *testing.T) {
	c := newCast(t, true, &stageDeal{pairing: true})
	client := c.dial(c.client.path, c.client.token)
	conn, err := c.relay.LoadConn(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sessionOf(conn)
	if err != nil {
		t.Fatal(err)
	}
	x := c.deals[0]
	send := func(k string, e Event) {
		t.Helper()
		m := move{
			scope: scope{Client: x.client, Request: x.id, Kind: kind(k)}, event: e,
			payload: []byte(x.payload(k)), conn: client, connAt: conn.At, pairing: s.Pairing,
		}
		if _, err := c.knock.apply(t.Context(), s.keys(), m); err != nil {
			t.Fatal(err)
		}
	}
	c.beforeGet = func(k table.Key) {
		if k == s.keys().exchangeKey(x.id) {
			c.beforeGet = nil
			send(peer.Request, RequestSent)
		}
	}
	send(peer.Completion, CompletionSent)
	record, err := c.knock.loadClient(t.Context(), s.keys(), x.client)
	if err != nil || record == nil {
		t.Fatal("there is no client", err)
	}
	if want := int64(len(x.payload(peer.Request)) + len(x.payload(peer.Completion))); record.Bytes != want || record.Open != 1 {
		t.Errorf("the client counts %d exchanges with %d bytes, not 1 with %d", record.Open, record.Bytes, want)
	}
}

// A device that is gone before it was sent what it has resumed is no failure: the frame
// would come again and again.
func TestDeviceThatIsGoneWhileItResumes(t *testing.T) {
	c := newCast(t, true, &stageDeal{})
	device := c.dial(c.device.path, c.device.token)
	client := c.dial(c.client.path, c.client.token)
	for c.work() {
		continue
	}
	x := c.deals[0]
	c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
	c.hangUp(device)
	c.frame(device, string(x.frame(peer.Resume, "").Encode())) // fails the test if it fails
}
