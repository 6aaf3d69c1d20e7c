package stories

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	knockpeer "blindpost/shared/client/agentknock"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/proof/bubble"
)

// An exchange stays open for a day without activity, and its state can be asked for
// another day. No sweeper has a part in it.
func TestKnockExpiry(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		c := k.dial(m)
		quiet, active := newID(), newID()
		c.publish(m.ID, quiet)
		dv.wantMessage(quiet, knockpeer.Request)
		c.publish(m.ID, active)
		dv.wantMessage(active, knockpeer.Request)
		w.Sleep(bubble.Day - time.Minute)
		c, dv = k.dial(m), k.reopen(dv)
		c.send(resume(m.ID, active))
		c.wantState(active, "open accepted absent absent")
		dv.wantMessage(active, knockpeer.Request) // once more, to be sure
		w.Sleep(2 * time.Minute)

		c.send(resume(m.ID, quiet))
		c.wantState(quiet, "expired discarded absent absent")
		c.send(resume(m.ID, active))
		c.wantState(active, "open accepted absent absent")
		// What has expired is not revived by anything.
		dv.send(ack(m.ID, quiet, knockpeer.Request))
		dv.send(message(m.ID, quiet, knockpeer.Response, `1`))
		dv.want(knockpeer.Inactive)
		c.send(message(m.ID, quiet, knockpeer.Request, `2`))
		c.want(knockpeer.Inactive)
		c.send(message(m.ID, quiet, knockpeer.Completion, `3`))
		c.want(knockpeer.Ack)
		c.send(resume(m.ID, quiet))
		c.wantState(quiet, "expired discarded absent discarded")
		dv.wantNothing()
		if _, waited := k.open(); len(waited) != 1 || waited[0].RequestID != active {
			w.T.Errorf("the device is sent %v", waited)
		}

		w.Sleep(bubble.Day)
		c = k.dial(m)
		c.send(resume(m.ID, quiet))
		c.want(knockpeer.Inactive)
		// Nobody remembers it any more, but its id tells its age.
		c.send(message(m.ID, quiet, knockpeer.Request, `2`))
		c.wantError("INVALID_REQUEST_ID")
		w.Sleep(bubble.Day)
		c = k.dial(m)
		c.send(resume(m.ID, active))
		c.want(knockpeer.Inactive)
	})
}

// reopen connects the device again and acknowledges nothing.
func (k *knock) reopen(dv *knockEnd) *knockEnd {
	k.w.T.Helper()
	dv.Drop()
	dv, _ = k.open()
	return dv
}

// With retention shorter than the life of an id, an id that is used stays used.
func TestKnockIDsStayUsed(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		c := k.dial(m)
		settled, expired, never := newID(), newID(), newID()
		c.publish(m.ID, settled)
		dv.wantMessage(settled, knockpeer.Request)
		dv.send(ack(m.ID, settled, knockpeer.Request))
		c.want(knockpeer.Receipt)
		c.send(message(m.ID, settled, knockpeer.Completion, `1`))
		c.want(knockpeer.Ack)
		dv.wantMessage(settled, knockpeer.Completion)
		dv.send(ack(m.ID, settled, knockpeer.Completion))
		c.want(knockpeer.Receipt)
		c.publish(m.ID, expired)
		dv.wantMessage(expired, knockpeer.Request)
		c.send(message(m.ID, never, knockpeer.Completion, `1`))
		c.want(knockpeer.Ack)
		for range 20 {
			w.Sleep(time.Hour)
			c = k.dial(m)
			for _, id := range []string{settled, expired, never} {
				c.send(message(m.ID, id, knockpeer.Request, `2`))
				if f := c.want(knockpeer.Inactive); f.Kind != "" {
					w.T.Fatalf("the client is told %s", f)
				}
			}
			c.Close()
		}
		if _, waited := k.open(); len(waited) != 0 {
			w.T.Errorf("the device is sent %v", waited)
		}
	}, knocking(func(l *agentknock.Limits) { l.ExchangeTTL, l.RecoveryTTL = time.Minute, time.Minute }))
}

// An admitted attempt can be taken up for an hour, whatever has become of the
// address.
func TestKnockPairingAttempt(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k := w.knock()
		dv, _ := k.open()
		m := knockpeer.NewClient(k.relay, k.addr, time.Now())
		dial := func() (*knockEnd, *knockpeer.Refusal) {
			c, err := m.DialPairing(w.within(), knockpeer.Options{})
			var no *knockpeer.Refusal
			if errors.As(err, &no) {
				return nil, no
			}
			return k.end("pairing client", c, err), nil
		}
		c, no := dial()
		if no != nil {
			w.T.Fatal(no)
		}
		c.Close()
		w.must(k.device.SetPairing(w.within(), false))
		w.must(k.device.SetAddress(w.within(), strings.Repeat("ab", 16)))
		w.Sleep(59 * time.Minute)
		if c, no = dial(); no != nil {
			w.T.Fatalf("within the hour: %v", no)
		}
		c.Close()
		w.Sleep(time.Minute)
		if _, no = dial(); no == nil || no.Status != 404 {
			w.T.Errorf("after the hour: %v", no)
		}
		m.AddressID = strings.Repeat("ab", 16)
		if _, no = dial(); no == nil || no.Status != 403 {
			w.T.Errorf("while the device takes no pairings: %v", no)
		}
		w.must(k.device.SetPairing(w.within(), true))
		if c, no = dial(); no != nil {
			w.T.Fatal(no)
		}
		c.publish(m.ID, m.ID)
		if f := dv.wantMessage(m.ID, knockpeer.Request); f.AddressID != m.AddressID {
			w.T.Errorf("the device is told of the address %q", f.AddressID)
		}
		w.Sleep(bubble.Day + time.Hour)
		m = knockpeer.NewClient(k.relay, m.AddressID, time.Now().Add(-bubble.Day-time.Minute))
		if _, no = dial(); no == nil || no.Status != 400 || no.Code != "INVALID_REQUEST_ID" {
			w.T.Errorf("with an old id: %v", no)
		}
	})
}

// The limits of a client and of a device, and how they let go.
func TestKnockLimits(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		other := k.client(dv)
		w.Sleep(time.Minute)
		c, oc := k.dial(m), k.dial(other)
		begin := func(e *knockEnd, m *knockpeer.Client, code string) (f knockpeer.Frame) {
			w.T.Helper()
			id := newID()
			if code == "" {
				e.publish(m.ID, id)
				return f
			}
			e.send(message(m.ID, id, knockpeer.Request, `{}`))
			f = e.wantError(code)
			if !f.Retryable || f.RetryAfter <= 0 || f.RequestID != id || f.Kind != knockpeer.Request {
				w.T.Errorf("%s", f)
			}
			return f
		}
		for range 3 {
			begin(c, m, "")
		}
		w.Sleep(10 * time.Second)
		if f := begin(c, m, "RATE_LIMITED"); f.RetryAfter != 50*time.Second {
			w.T.Errorf("to be retried after %v", f.RetryAfter)
		}
		begin(oc, other, "")             // another client
		begin(oc, other, "RATE_LIMITED") // but the same device
		w.Sleep(50 * time.Second)
		begin(c, m, "")
		begin(c, m, "CAPACITY_EXCEEDED") // four are open
		w.Sleep(time.Minute)
		begin(oc, other, "")
		begin(oc, other, "CAPACITY_EXCEEDED") // six of the device
		// What has expired counts no more, though nobody has looked at it.
		w.Sleep(bubble.Day)
		c, oc = k.dial(m), k.dial(other)
		begin(c, m, "")
		begin(oc, other, "")
	}, knocking(func(l *agentknock.Limits) {
		l.ClientExchangesPerMinute, l.DeviceExchangesPerMinute = 3, 4
		l.ClientOpenExchanges, l.DeviceOpenExchanges = 4, 6
	}))
}

// Bytes that wait are limited in both directions, and are free again when they are
// delivered.
func TestKnockStoredBytes(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		c := k.dial(m)
		payload := `"` + strings.Repeat("x", 598) + `"`
		a, b := newID(), newID()
		c.send(message(m.ID, a, knockpeer.Request, payload))
		c.want(knockpeer.Ack)
		dv.wantMessage(a, knockpeer.Request)
		c.send(message(m.ID, b, knockpeer.Request, payload))
		c.wantError("CAPACITY_EXCEEDED")
		dv.send(ack(m.ID, a, knockpeer.Request))
		c.want(knockpeer.Receipt)
		c.send(message(m.ID, b, knockpeer.Request, payload))
		c.want(knockpeer.Ack)
		dv.wantMessage(b, knockpeer.Request)
		dv.send(message(m.ID, a, knockpeer.Response, payload))
		if f := dv.wantError("CAPACITY_EXCEEDED"); !f.Retryable || f.RequestID != a || f.Kind != knockpeer.Response {
			w.T.Errorf("the device is told %s", f)
		}
		// An answer to b takes the place of its request.
		dv.send(message(m.ID, b, knockpeer.Response, payload))
		dv.want(knockpeer.Ack)
		c.want(knockpeer.Receipt)
		c.wantMessage(b, knockpeer.Response)
		c.send(message(m.ID, b, knockpeer.Completion, payload)) // and this that of the answer
		c.want(knockpeer.Ack)
		dv.wantMessage(b, knockpeer.Completion)
	}, knocking(func(l *agentknock.Limits) { l.ClientStoredBytes = 1000 }))
}

// Who sends too many frames is closed with 1013.
func TestKnockFlood(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, _, m := w.pair()
		c := k.dial(m)
		for range 10 {
			c.send(resume(m.ID, newID()))
			c.want(knockpeer.Inactive)
		}
		c.send(resume(m.ID, newID()))
		if f := c.wantError("RATE_LIMITED"); !f.Retryable || f.RequestID != "" {
			w.T.Errorf("the client is told %s", f)
		}
		c.wantClosed(1013)
	}, knocking(func(l *agentknock.Limits) { l.FramesPerMinute = 10 }))
}

// Deleting a device closes all sockets and leaves nothing in the file that is its.
func TestKnockDelete(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		c, c2 := k.dial(m), k.dial(m)
		for i := range 3 {
			c.send(message(m.ID, newID(), knockpeer.Request, fmt.Sprint(i)))
			c.want(knockpeer.Ack)
			dv.want(knockpeer.Message)
		}
		w.must(k.device.Delete(w.within()))
		dv.wantClosed(1000)
		c.wantClosed(4003)
		c2.wantClosed(4003)
		if _, err := k.device.Post(w.within(), "/push", map[string]string{"fid": "x"}); err == nil {
			w.T.Error("a device that was deleted registers")
		}
		w.Sleep(bubble.Day + time.Minute) // pairing attempts, and jobs that look again
		w.Shutdown(0)
		for _, key := range w.Stored() {
			if strings.Contains(key, k.device.ID) || strings.Contains(key, k.addr) || strings.Contains(key, m.ID) {
				w.T.Errorf("%s is left", key)
			}
		}
	})
}
