package conformance

import (
	"testing"
	"time"
)

// brisk makes the times of section 8 short enough to wait for.
var brisk = Settings{MessagesPerMinute: plenty, ConnectionsPerIP: plenty,
	PingInterval: 200 * time.Millisecond, IdleTimeout: 1500 * time.Millisecond}

var section8 = []story{
	{Name: "Section8_PingsAndIdleTimeout", Tell: section8Idle, Own: &brisk, Needs: pings},
	{Name: "Section8_SilentNetworkIsNoticed", Tell: section8Silent, Own: &brisk, Needs: pings},
}

// Pings come of their own accord; who answers them stays although it says
// nothing else, who does not is closed, and the others are told.
func section8Idle(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 2)
	quiet := all[0].dialSeen(agent)
	since := time.Now()
	deaf := all[1].dial(line{deaf: true})
	agent.wantOnline(all[1].identity)
	quiet.wantOnline(all[1].identity)

	deaf.wantEnd()
	if took := time.Since(since); took < brisk.IdleTimeout*9/10 {
		t.Errorf("closed after %v", took)
	}
	agent.wantOffline(all[1].identity)
	quiet.wantOffline(all[1].identity)
	if err := quiet.await(patience, func() bool { return quiet.pings >= 3 }); err != nil {
		t.Fatal("pings do not come at their interval")
	}
	quiet.wantPresence(h.agent, all[0].identity)
}

// The same for a network that has died without telling anybody.
func section8Silent(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	wire := r.proxy(t)
	ph.dial(line{through: wire})
	agent.wantOnline(ph.identity)
	wire.Freeze()
	agent.wantOffline(ph.identity)
	agent.send(r.liveParcel("anybody there").to(ph.key))
	agent.wantPeerOffline(ph.identity)
}
