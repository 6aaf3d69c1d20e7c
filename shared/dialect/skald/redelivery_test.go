package skald_test

import (
	"crypto/rand"
	"testing"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
)

// deliver brings a frame under its id.
func (d *desk) deliver(w *who, id string, f *skaldpb.RelayFrame) {
	d.t.Helper()
	d.event(w, gateway.FrameEvent{ID: id, Data: marshal(f)})
}

// paired is how often the agent was told of a client.
func (d *desk) paired() (n int) {
	for _, f := range d.got[d.agent.conn] {
		if f.GetClientPaired() != nil {
			n++
		}
	}
	return n
}

// A queue that has lost a delete, and a front that has lost an answer, deliver the frame
// again that has completed an admission: it is no second Auth.
func TestAuthDeliveredAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		from func(d *desk) (*who, int)
	}{
		{"agent", func(d *desk) (*who, int) { d.call(d.agent); return d.agent, 0 }},
		{"client", func(d *desk) (*who, int) { d.call(d.phone); return d.phone, 1 }},
		{"pairing", func(d *desk) (*who, int) { return d.newPeer(), 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			w, role := c.from(d)
			auth := d.auth(w, role, d.token)
			d.deliver(w, "a", auth)
			told, paired := len(d.got[w.conn]), d.paired()
			if told == 0 || d.got[w.conn][0].GetAuthOk() == nil {
				t.Fatalf("answered with %v", d.got[w.conn])
			}
			d.deliver(w, "a", auth)
			d.deliver(w, "b", presenceRequest())
			d.deliver(w, "a", auth)
			for _, f := range d.got[w.conn][told:] {
				if f.GetAuthOk() != nil || f.GetAuthError() != nil || f.GetError() != nil && role != 2 {
					t.Errorf("the second delivery is answered with %v", f)
				}
			}
			if n := len(d.got[w.conn]) - told; n != 1 || d.paired() != paired || d.end[w.conn] != 0 {
				t.Errorf("%d frames more, the agent was told %d times more, closed with %d", n, d.paired()-paired, d.end[w.conn])
			}
			// Another frame is another Auth.
			d.deliver(w, "c", auth)
			if f := d.got[w.conn][len(d.got[w.conn])-1]; f.GetError().GetCode() != "bad_request" {
				t.Errorf("a second Auth is answered with %v", f)
			}
		})
	}
}

// A queue takes back several frames at once: a frame that comes again is older than those
// that were handled after it, and must not undo them.
func TestControlDeliveredAgain(t *testing.T) {
	t.Run("authorize", func(t *testing.T) {
		d := newDesk(t)
		lists := []*skaldpb.RelayFrame{authorize(d.phone.pub), authorize(d.phone.pub, d.pending.pub)}
		for range 2 {
			d.deliver(d.agent, "1", lists[0])
			d.deliver(d.agent, "2", lists[1])
		}
		d.call(d.pending)
		d.send(d.pending, d.auth(d.pending, 1, nil))
		if got := d.got[d.pending.conn]; len(got) == 0 || got[0].GetAuthOk() == nil {
			t.Errorf("the client of the newer list is answered with %v", got)
		}
	})
	t.Run("pairing", func(t *testing.T) {
		d := newDesk(t)
		used, fresh := make([]byte, 32), make([]byte, 32)
		_, _ = rand.Read(used)
		_, _ = rand.Read(fresh)
		d.deliver(d.agent, "1", pairingStart(used))
		x := d.newPeer()
		d.send(x, d.auth(x, 2, used))
		d.deliver(d.agent, "2", pairingStart(fresh))
		d.deliver(d.agent, "1", pairingStart(used))
		y, z := d.newPeer(), d.newPeer()
		d.send(y, d.auth(y, 2, used))
		if got := d.got[y.conn]; len(got) != 1 || got[0].GetAuthError().GetCode() != "pairing_closed" {
			t.Errorf("the token that is used is answered with %v", got)
		}
		d.deliver(d.agent, "3", pairingStop())
		d.deliver(d.agent, "2", pairingStart(fresh))
		d.send(z, d.auth(z, 2, fresh))
		if got := d.got[z.conn]; len(got) != 1 || got[0].GetAuthError().GetCode() != "pairing_closed" {
			t.Errorf("the window that was closed is answered with %v", got)
		}
		d.deliver(d.agent, "4", pairingStart(fresh))
		d.deliver(d.agent, "3", pairingStop())
		v := d.newPeer()
		d.send(v, d.auth(v, 2, fresh))
		if got := d.got[v.conn]; len(got) != 1 || got[0].GetAuthOk() == nil {
			t.Errorf("the window that was opened after a stop is answered with %v", got)
		}
	})
}
