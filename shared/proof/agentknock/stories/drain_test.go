package stories

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	knockpeer "blindpost/shared/client/agentknock"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/standalone"
)

// A device that comes back to more than a front may buffer for it gets all of it in
// order, without being taken for a slow reader; what arrives meanwhile comes after.
func TestKnockDrainIsPaced(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		dv.Close()
		c := k.dial(m)
		big := `"` + strings.Repeat("x", 100_000) + `"`
		var ids []string
		for i := range 60 {
			id := newID()
			ids = append(ids, id)
			c.send(message(m.ID, id, knockpeer.Request, big))
			c.want(knockpeer.Ack)
			if i%3 == 0 {
				c.send(message(m.ID, id, knockpeer.Completion, big))
				c.want(knockpeer.Ack)
			}
		}
		var got []string
		var late string
		conn, err := k.device.Dial(w.within(), knockpeer.Options{})
		dv = k.end("device", conn, err)
		for {
			f := dv.next()
			if f.Type == knockpeer.CaughtUp {
				break
			}
			if f.Type == knockpeer.Message {
				got = append(got, f.RequestID+" "+f.Kind)
			}
			if len(got) == 5 && late == "" {
				late = newID()
				c.publish(m.ID, late)
			}
		}
		var want []string
		for i, id := range ids {
			want = append(want, id+" request")
			if i%3 == 0 {
				want = append(want, id+" completion")
			}
		}
		if len(got) == len(want)+1 {
			want = append(want, late+" request") // it was accepted before the end
		} else {
			dv.wantMessage(late, knockpeer.Request)
		}
		if !slices.Equal(got, want) {
			w.T.Errorf("the device is sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		dv.wantNothing()
	}, func(c *standalone.Config) {
		c.SendBuffer = 2 << 20
		knocking(func(l *agentknock.Limits) {
			l.ClientExchangesPerMinute, l.ClientStoredBytes, l.DeviceStoredBytes = 0, 0, 0
		})(c)
	})
}

// A device that reads nothing for a while is not sent more than a window.
func TestKnockDrainWaits(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		dv.Close()
		c := k.dial(m)
		for i := range 200 {
			c.send(message(m.ID, newID(), knockpeer.Request, fmt.Sprint(i)))
			c.want(knockpeer.Ack)
		}
		conn, err := k.device.Dial(w.within(), knockpeer.Options{Deaf: true})
		dv = k.end("device", conn, err)
		dv.want(knockpeer.PushRegistration)
		w.Settle()
		if n := len(dv.Waiting()); n == 0 || n > 150 {
			w.T.Errorf("a device that confirms nothing is sent %d messages", n)
		}
	}, knocking(func(l *agentknock.Limits) {
		l.ClientExchangesPerMinute, l.ClientOpenExchanges, l.DeviceExchangesPerMinute = 0, 0, 0
	}))
}

// Suspending closes what is open and keeps the exchanges; revoking ends them.
func TestKnockClientStates(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		c, c2 := k.dial(m), k.dial(m)
		a, b := newID(), newID()
		for _, id := range []string{a, b} {
			c.publish(m.ID, id)
			dv.wantMessage(id, knockpeer.Request)
		}
		dv.send(ack(m.ID, a, knockpeer.Request))
		c.want(knockpeer.Receipt)
		set := func(state string) {
			w.T.Helper()
			dv.send(knockpeer.Frame{Type: knockpeer.SetClientState, ClientID: m.ID, State: state})
			if f := dv.want(knockpeer.ClientState); f.State != state {
				w.T.Fatalf("the device is sent %s", f)
			}
		}
		set("suspended")
		c.wantClosed(4002)
		c2.wantClosed(4002)
		dv.send(message(m.ID, a, knockpeer.Response, `"kept"`))
		dv.want(knockpeer.Ack)
		set("active")
		w.Sleep(time.Minute) // nothing that looks again closes what is open now
		c = k.dial(m)
		w.Sleep(time.Minute)
		c.send(resume(m.ID, a))
		c.wantState(a, "open delivered accepted absent")
		c.wantMessage(a, knockpeer.Response)
		set("revoked")
		c.wantClosed(4003)
		set("revoked")
		dv.send(knockpeer.Frame{Type: knockpeer.Resume, ClientID: m.ID, RequestID: a})
		dv.wantState(a, "expired delivered discarded absent")
		dv.send(knockpeer.Frame{Type: knockpeer.Resume, ClientID: m.ID, RequestID: b})
		dv.wantState(b, "expired discarded absent absent")
		if _, waited := k.open(); len(waited) != 0 {
			w.T.Errorf("the device is sent %v", waited)
		}
	})
}

// The newest connection of a device wins, and what the older one still says counts.
func TestKnockNewestDeviceWins(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		c, id := k.dial(m), newID()
		c.publish(m.ID, id)
		dv.wantMessage(id, knockpeer.Request)
		newer, waited := k.open()
		dv.wantClosed(1000)
		if len(waited) != 1 || waited[0].RequestID != id {
			w.T.Fatalf("the newer one is sent %v", waited)
		}
		newer.send(ack(m.ID, id, knockpeer.Request))
		c.want(knockpeer.Receipt)
		next := newID()
		c.publish(m.ID, next)
		newer.wantMessage(next, knockpeer.Request)
	})
}
