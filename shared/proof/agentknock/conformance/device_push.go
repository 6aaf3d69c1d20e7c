package conformance

import (
	"bytes"
	"encoding/json"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// devicePushes are about waking a device that has no socket.
var devicePushes = []story{
	{Name: "DevicePush_WakesADeviceThatIsAway", Tell: pushWakes, Needs: pushes},
	{Name: "DevicePush_CarriesNothingElse", Tell: pushBare, Needs: pushes},
	{Name: "DevicePush_NotWhileConnected", Tell: pushConnected, Needs: pushes},
	{Name: "DevicePush_NotWithoutRegistration", Tell: pushMissing, Needs: pushes},
	{Name: "DevicePush_InitialPairing", Tell: pushPairing, Needs: pushes},
	{Name: "DevicePush_Completion", Tell: pushCompletion, Needs: pushes},
}

// pushesTo returns the pushes to a device so far.
func (h *home) pushesTo() []Push {
	var got []Push
	for _, p := range h.r.Pushes() {
		if p.Token == h.fid {
			got = append(got, p)
		}
	}
	return got
}

// wantWake waits for a push that is more than those before.
func (h *home) wantWake(before int) {
	h.t.Helper()
	eventually(h.t, "a wake", func() bool { return len(h.pushesTo()) > before })
	for _, p := range h.pushesTo() {
		if !p.Android {
			h.t.Error("the push goes to an iPhone")
		}
		if !isWake(p.Payload) {
			h.t.Errorf("the push is %.300q", p.Payload)
		}
	}
}

// isWake reports whether a push is an FCM data message with {"type":"wake"}, in
// whatever envelope, and nothing else that is data.
func isWake(payload []byte) bool {
	var v any
	if json.Unmarshal(payload, &v) != nil {
		return false
	}
	found := 0
	var walk func(v any, name string)
	walk = func(v any, name string) {
		switch v := v.(type) {
		case map[string]any:
			if name == "data" {
				if len(v) == 1 && v["type"] == "wake" {
					found++
				} else {
					found += 2
				}
				return
			}
			if name == "notification" {
				found += 2
			}
			for k, w := range v {
				walk(w, k)
			}
		case string: // SNS has JSON in JSON
			var inner any
			if json.Unmarshal([]byte(v), &inner) == nil {
				walk(inner, name)
			}
		}
	}
	walk(v, "")
	return found == 1
}

func pushWakes(t *testing.T, r *relay) {
	h := r.home(t)
	h.registerPush()
	dv := h.open()
	m := h.pair(dv)
	c := m.dial()
	for range 3 {
		dv.close()
		before := len(h.pushesTo())
		x := m.deal()
		// Until the relay has seen it go, it may take it for present.
		eventually(t, "a wake", func() bool {
			y := m.deal()
			y.publish(c)
			y.complete(c)
			return len(h.pushesTo()) > before
		})
		x.publish(c)
		h.wantWake(before)
		dv = h.dial()
		for {
			f := dv.next("caught_up")
			if f.Type == peer.CaughtUp {
				break
			}
			if f.Type == peer.Message {
				f.Type, f.Payload, f.AddressID = peer.Ack, nil, ""
				dv.send(f)
			}
		}
		dv.settle()
		c = m.dial()
	}
}

func pushBare(t *testing.T, r *relay) {
	h := r.home(t)
	h.registerPush()
	m := h.newMember()
	c := m.dialPairing()
	x := m.pairing()
	x.publish(c)
	h.wantWake(0)
	for _, p := range h.pushesTo() {
		for _, id := range []string{m.ID, h.device.ID, h.address} {
			if bytes.Contains(p.Payload, []byte(id)) {
				t.Error("the push names who is behind it")
			}
		}
		if what := r.secrets.In(p.Payload); what != "" {
			t.Errorf("the push tells %s", what)
		}
	}
}

func pushConnected(t *testing.T, r *relay) {
	h := r.home(t)
	h.registerPush()
	dv := h.open()
	m := h.pair(dv)
	c := m.dial()
	for range 5 {
		m.deal().whole(c, dv)
	}
	// Another device's push comes after any of this one's.
	other := r.home(t)
	other.registerPush()
	om := other.newMember()
	om.pairing().publish(om.dialPairing())
	other.wantWake(0)
	if n := len(h.pushesTo()); n > 0 {
		t.Errorf("%d pushes to a device that is there", n)
	}
}

func pushMissing(t *testing.T, r *relay) {
	h := r.home(t)
	m := h.newMember()
	c := m.dialPairing()
	x := m.pairing()
	x.publish(c)
	dv := h.dial()
	dv.mayGet(m.stateFrame("pending"))
	dv.wantOpening(false, x.delivery(peer.Request))
	dv.close()
	for _, p := range r.Pushes() {
		if p.Token == "" {
			t.Error("a push to nobody")
		}
	}
}

func pushPairing(t *testing.T, r *relay) {
	h := r.home(t)
	h.registerPush()
	m := h.newMember()
	c := m.dialPairing()
	x := m.pairing()
	x.publish(c)
	h.wantWake(0)
	dv := h.dial()
	dv.mayGet(m.stateFrame("pending"))
	dv.wantOpening(true, x.delivery(peer.Request))
	dv.send(x.ack(peer.Request))
	c.want(x.receipt(peer.Request))
}

// A completion is work, too.
func pushCompletion(t *testing.T, r *relay) {
	h := r.home(t)
	h.registerPush()
	dv := h.open()
	m := h.pair(dv)
	c := m.dial()
	var all []*deal
	for range 50 {
		x := m.deal()
		x.publish(c)
		x.deliver(dv, c)
		all = append(all, x)
	}
	dv.close()
	// The relay may take it for present for a moment yet.
	eventually(t, "a wake", func() bool {
		if len(all) > 0 {
			all[0].complete(c)
			all = all[1:]
		}
		return len(h.pushesTo()) > 0
	})
	h.wantWake(0)
}
