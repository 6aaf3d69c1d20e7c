package stories

import (
	"strings"
	"testing"
	"time"

	knockpeer "blindpost/shared/client/agentknock"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/proof/bubble"
	"blindpost/shared/push"
)

const wakePayload = `{"fcmV1Message":{"message":{"data":{"type":"wake"},"android":{"priority":"high"}}}}`

func (k *knock) wantPushes(n int) {
	k.w.T.Helper()
	got := k.w.Pushes.Take()
	if len(got) != n {
		k.w.T.Fatalf("%d pushes, want %d", len(got), n)
	}
	for _, p := range got {
		if string(p.Payload) != wakePayload || p.Platform != push.Android || p.Kind != push.Wake || p.Token != "the-fid-of-the-phone" {
			k.w.T.Errorf("a push to %q is %s, a %v", p.Token, p.Payload, p)
		}
	}
}

// sleeping is a device that went to sleep, with a client that is connected.
func (w *world) sleeping() (*knock, *knockpeer.Client, *knockEnd) {
	w.T.Helper()
	k, dv, m := w.pair()
	w.Secrets.Add("a token", []byte("the-fid-of-the-phone"))
	w.must(k.device.SetPush(w.within(), "the-fid-of-the-phone"))
	dv.Close()
	w.Settle()
	return k, m, k.dial(m)
}

// Work for a device that sleeps wakes it, once for much work.
func TestKnockWake(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, m, c := w.sleeping()
		k.wantPushes(0)
		for range 20 {
			c.publish(m.ID, newID())
		}
		k.wantPushes(1)
		// The first may have been lost.
		w.Sleep(29 * time.Second)
		k.wantPushes(0)
		w.Sleep(time.Second)
		k.wantPushes(1)
		w.Sleep(time.Hour)
		k.wantPushes(0)
		// New work later, once again.
		c = k.dial(m)
		c.publish(m.ID, newID())
		k.wantPushes(1)
		_, waited := k.open()
		if len(waited) != 21 {
			w.T.Errorf("%d messages waited", len(waited))
		}
		w.Sleep(time.Minute)
		k.wantPushes(0)
	})
}

// A device that is connected is not woken, and one that loses its connection with
// work that it has not acknowledged is.
func TestKnockWakeAfterLoss(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		w.must(k.device.SetPush(w.within(), "the-fid-of-the-phone"))
		c := k.dial(m)
		id := newID()
		c.publish(m.ID, id)
		dv.wantMessage(id, knockpeer.Request)
		k.wantPushes(0)
		dv.Drop()
		w.Settle()
		k.wantPushes(1)
		dv, waited := k.open()
		if len(waited) != 1 || waited[0].RequestID != id {
			w.T.Fatalf("the device is sent %v", waited)
		}
		dv.send(ack(m.ID, id, knockpeer.Request))
		c.want(knockpeer.Receipt)
		dv.Close()
		w.Sleep(time.Hour)
		k.wantPushes(0)
	})
}

// A provider that is slow or fails delays nobody, and is tried again.
func TestKnockWakeFails(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.Loud = true
		k, m, c := w.sleeping()
		w.Pushes.FailNext(bubble.ErrProvider, bubble.ErrProvider)
		w.Pushes.Delay.Store(int64(5 * time.Second))
		c.publish(m.ID, newID()) // within a second
		w.Sleep(20 * time.Second)
		if got := w.Pushes.Take(); len(got) != 3 || got[2].Err != nil {
			w.T.Errorf("%d pushes were tried", len(got))
		}
		_ = k
	})
}

// A token that the provider knows no more is forgotten, and the device hears of it.
func TestKnockWakeTokenGone(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, m, c := w.sleeping()
		w.Pushes.FailNext(push.ErrTokenGone)
		c.publish(m.ID, newID())
		k.wantPushes(1)
		w.Sleep(time.Hour)
		c = k.dial(m)
		c.publish(m.ID, newID())
		k.wantPushes(0)
		conn, err := k.device.Dial(w.within(), knockpeer.Options{})
		dv := k.end("device", conn, err)
		if f := dv.want(knockpeer.PushRegistration); f.State != "invalid" {
			w.T.Errorf("the push registration is %s", f.State)
		}
		w.must(k.device.SetPush(w.within(), "the-fid-of-the-phone"))
		conn, err = k.device.Dial(w.within(), knockpeer.Options{})
		dv = k.end("device", conn, err)
		if f := dv.want(knockpeer.PushRegistration); f.State != "registered" {
			w.T.Errorf("the push registration is %s", f.State)
		}
	})
}

// After kill -9 a device is woken for what waits: the job that was to do so has died.
func TestKnockWakeAfterCrash(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, m, c := w.sleeping()
		w.Pushes.FailNext(bubble.ErrProvider, bubble.ErrProvider, bubble.ErrProvider)
		id := newID()
		c.publish(m.ID, id)
		w.Settle()
		w.Crash()
		w.Pushes.FailNext()
		w.Pushes.Take()
		w.Open()
		if got := w.Pushes.Take(); len(got) == 0 {
			w.T.Error("nobody was woken")
		}
		if _, waited := k.open(); len(waited) != 1 || waited[0].RequestID != id || !strings.Contains(string(waited[0].Payload), id) {
			w.T.Errorf("the device is sent %v", waited)
		}
	}, knocking(func(l *agentknock.Limits) { l.WakeInterval = 0 }))
}
