package conformance

import (
	"fmt"
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

var section9 = []story{
	{Name: "Section9_1_TTLIsClamped", Tell: section91TTL},
	{Name: "Section9_1_NewTokenReplacesOld", Tell: section91Replaced},
	{Name: "Section9_1_WindowOutlivesTheConnection", Tell: section91Away},
	{Name: "Section9_2_StopClosesTheWindow", Tell: section92Stop},
	{Name: "Section9_3_WindowExpires", Tell: section93Expired},
	{Name: "Section9_3_ConsumedStaysConsumed", Tell: section93Consumed},
	{Name: "Section9_4_ClientPairedTellsKeysAndPlatform", Tell: section94},
	{Name: "Section9_WholeStory", Tell: section9Whole},
}

func section91TTL(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	for _, c := range []struct{ asked, granted uint32 }{
		{0, 300}, {1, 1}, {2, 2}, {300, 300}, {600, 600}, {601, 600}, {86_400, 600}, {1 << 31, 600}, {4_294_967_295, 600},
	} {
		t.Run(fmt.Sprint(c.asked), func(t *testing.T) {
			token := h.newToken()
			agent.send(framePairingStart(token, c.asked))
			agent.wantPairingReady(c.granted)
			if c.asked > 2 || c.asked == 0 {
				ph := h.newPhone()
				ph.dialPairing(token).wantAuthOk(h.ns) // no overflow: it is open
				agent.wantClientPaired(ph.identity)
			}
		})
	}
}

// The new token replaces the previous one, which is dead at once.
func section91Replaced(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	old := h.openWindow(agent)
	token := h.openWindow(agent)
	ph := h.newPhone()
	ph.dialPairing(old).wantRefusal("pairing_closed")
	ph.dialPairing(token).wantAuthOk(h.ns)
	agent.wantClientPaired(ph.identity)
	// And after that one is consumed, the old one is no better.
	h.newPhone().dialPairing(old).wantRefusal("pairing_closed")
	agent.wantNothing()
}

// The window is the namespace's and has a time, whether the agent is connected
// or not. What happens meanwhile, it is told when it comes back.
func section91Away(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	token := h.openWindow(agent)
	agent.close()
	ph := h.newPhone()
	ph.dialPairing(token).wantAuthOk(h.ns)
	agent = h.dialAgent()
	agent.wantClientPaired(ph.identity)
	h.authorize(agent, ph)
	ph.dialSeen(agent)
}

func section92Stop(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	token := h.openWindow(agent)
	agent.send(framePairingStop())
	agent.wantPairingStopOk()
	h.newPhone().dialPairing(token).wantRefusal("pairing_closed")
	// Nothing to stop is no mistake.
	agent.send(framePairingStop())
	agent.wantPairingStopOk()
	// A window can be opened again, with the same token if the agent insists.
	h.pair(agent, h.newPhone())
	agent.wantNothing()
}

// When the ttl is over, the window is closed.
func section93Expired(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	token := h.newToken()
	agent.send(framePairingStart(token, 1))
	agent.wantPairingReady(1)
	time.Sleep(time.Second + grain)
	h.newPhone().dialPairing(token).wantRefusal("pairing_closed")
	h.pair(agent, h.newPhone())
	agent.wantNothing()
}

// A consumed token stays consumed, stop or no stop.
func section93Consumed(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	token := h.openWindow(agent)
	ph := h.newPhone()
	ph.dialPairing(token).wantAuthOk(h.ns)
	agent.wantClientPaired(ph.identity)
	agent.send(framePairingStop())
	agent.wantPairingStopOk()
	h.newPhone().dialPairing(token).wantRefusal("pairing_closed")
	agent.wantNothing()
}

// ClientPaired carries what the client sent: both keys and the platform.
func section94(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	for _, platform := range []skaldpb.Platform{skaldpb.Platform_PLATFORM_IOS, skaldpb.Platform_PLATFORM_ANDROID} {
		ph := h.newPhone()
		ph.platform = platform
		h.pair(agent, ph) // wants ClientPaired
	}
	agent.wantNothing()
}

// The diagram of section 9.
func section9Whole(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	token := h.newToken()
	agent.send(framePairingStart(token, 300))
	agent.wantPairingReady(300)

	ph := h.newPhone()
	p := ph.dialPairing(token)
	p.wantAuthOk(h.ns)
	p.close()
	agent.wantClientPaired(ph.identity)

	agent.send(frameAuthorize(ph.key))
	agent.wantAuthorizeOk(1)
	agent.send(framePairingStop())
	agent.wantPairingStopOk()

	p = ph.dialSeen(agent)
	hello := r.parcel("hello")
	p.send(hello.to(h.agent.key))
	agent.wantMessage(ph.identity, hello)
	agent.wantPresence(h.agent, ph.identity)
}
