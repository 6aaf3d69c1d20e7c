package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"testing"

	"blindpost/shared/dialect/skald/skaldpb"
)

var section6Push = []story{
	{Name: "Section6_3_PushForWhoIsAway", Tell: section6PushAway, Needs: pushes},
	{Name: "Section6_3_NoPushWithoutReason", Tell: section6PushNone, Needs: pushes},
	{Name: "Section6_3_PushOfALongMessageOnlyWakes", Tell: section6PushWake, Needs: pushes},
	{Name: "Section4_3_DeviceTokenIsUpdated", Tell: section43Token, Needs: pushes},
}

// shown is what an app finds in a push, on either platform.
type shown struct {
	NS, From, N, C string
	Wake           bool
}

func show(t *testing.T, push Push) shown {
	t.Helper()
	if len(push.Payload) > 4096 {
		t.Errorf("a push of %d bytes", len(push.Payload))
	}
	if !push.Android {
		var p struct {
			D struct {
				NS, From, N, C string
				Wake           bool
			}
		}
		if err := json.Unmarshal(push.Payload, &p); err != nil {
			t.Fatalf("push is no JSON: %v", err)
		}
		return shown(p.D)
	}
	// How the provider's envelope is called is not Skald's: look for the data.
	var found map[string]any
	var search func(v any)
	search = func(v any) {
		if m, ok := v.(map[string]any); ok {
			if _, ok := m["ns"].(string); ok {
				found = m
				return
			}
			for _, inner := range m {
				search(inner)
			}
		}
	}
	var whole any
	if err := json.Unmarshal(push.Payload, &whole); err != nil {
		t.Fatalf("push is no JSON: %v", err)
	}
	search(whole)
	text := func(key string) string { s, _ := found[key].(string); return s }
	return shown{NS: text("ns"), From: text("from"), N: text("n"), C: text("c"), Wake: text("wake") == "true"}
}

// wantPush waits for exactly n pushes to the token and returns the last.
func (r *relay) wantPush(t *testing.T, token string, n int) Push {
	t.Helper()
	eventually(t, "a push", func() bool { return len(r.pushesTo(token)) >= n })
	got := r.pushesTo(token)
	if len(got) != n {
		t.Fatalf("want %d pushes, got %d", n, len(got))
	}
	return got[n-1]
}

// A client that is not connected is sent a push with the message in it.
func section6PushAway(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	iphone, android := h.newPhone(), h.newPhone()
	android.platform = skaldpb.Platform_PLATFORM_ANDROID
	for _, ph := range []*phone{iphone, android} {
		h.pair(agent, ph)
	}
	h.authorize(agent, iphone, android)
	for _, ph := range []*phone{iphone, android} {
		m := r.parcel("wake up")
		agent.send(m.to(ph.key))
		push := r.wantPush(t, ph.token, 1)
		if push.Android != (ph == android) {
			t.Error("the push went to the wrong provider")
		}
		got := show(t, push)
		content, err := base64.StdEncoding.DecodeString(got.C)
		if got.NS != hexOf(h.ns) || got.From != hexOf(h.agent.key) || got.N != hexOf(m.nonce) ||
			err != nil || !bytes.Equal(content, m.ciphertext) {
			t.Errorf("the push does not carry the message (wake: %v)", got.Wake)
		}
		// The push is no delivery.
		p := ph.dialSeen(agent)
		p.wantMessage(h.agent, m)
		ph.leave(p, agent)
	}
}

// No push for live messages, for a client that is connected, for one without
// token, for the agent.
func section6PushNone(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 2)
	ph, witness := all[0], all[1]
	agent.send(r.liveParcel("live").to(ph.key))
	agent.wantPeerOffline(ph.identity)
	p := ph.dialSeen(agent)
	m := r.parcel("connected")
	agent.send(m.to(ph.key))
	p.wantMessage(h.agent, m)
	p.wantConfirmed()
	agent.close()
	p.wantOffline(h.agent)
	p.send(r.parcel("for the agent").to(h.agent.key))
	p.send(r.parcel("for the witness").to(witness.key))
	p.wantNothing()
	r.wantPush(t, witness.token, 1)
	if n := len(r.pushesTo(ph.token)); n > 0 {
		t.Errorf("%d pushes for nothing", n)
	}
	if n := len(r.pushesTo("")); n > 0 {
		t.Errorf("%d pushes to nobody", n)
	}
}

// What does not fit into a push wakes the app only.
func section6PushWake(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	m := r.parcel("long").grown(20_000)
	agent.send(m.to(ph.key))
	got := show(t, r.wantPush(t, ph.token, 1))
	if !got.Wake || got.C != "" || got.NS != hexOf(h.ns) {
		t.Errorf("want a push that only wakes, got wake=%v and %d characters", got.Wake, len(got.C))
	}
	ph.dialSeen(agent).wantMessage(h.agent, m)
}

// The device token is updated by each authentication: providers rotate it.
func section43Token(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	old := ph.token
	ph.leave(p, agent)
	ph.token = newIdentity(r, "rotated").token
	ph.leave(ph.dialSeen(agent), agent)
	agent.send(r.parcel("hello").to(ph.key))
	r.wantPush(t, ph.token, 1)
	if n := len(r.pushesTo(old)); n > 0 {
		t.Errorf("%d pushes to the old token", n)
	}
	// No token, no push.
	now := ph.token
	ph.token = ""
	p = ph.dialSeen(agent)
	p.want("the message")
	p.wantConfirmed()
	ph.leave(p, agent)
	agent.send(r.parcel("quiet").to(ph.key))
	witness := h.newPhone()
	h.pair(agent, witness)
	h.authorize(agent, ph, witness)
	agent.send(r.parcel("loud").to(witness.key))
	r.wantPush(t, witness.token, 1)
	r.wantPush(t, now, 1)
}
