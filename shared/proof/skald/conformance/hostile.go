package conformance

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// hostile are peers that mean no good, or whose network does not.
var hostile = []story{
	{Name: "Hostile_CrowdThatNeverAuthenticates", Tell: hostileCrowd, Own: &roomy, Alone: true},
	{Name: "Hostile_HalfOpenConnections", Tell: hostileHalfOpen},
	{Name: "Hostile_SilentNetworkLosesNothing", Tell: hostileSilent, Needs: delivery},
	{Name: "Hostile_SilentNetworkOfTheAgent", Tell: hostileSilentAgent, Needs: delivery},
	{Name: "Hostile_NetworkThatComesBack", Tell: hostileTunnel, Needs: delivery},
	{Name: "Hostile_StalledReaderHoldsUpNobody", Tell: hostileStalled, Needs: carries(maxLiveFrame)},
	{Name: "Hostile_GarbageDoesNotDisturbOthers", Tell: hostileGarbage},
	{Name: "Hostile_HangUpWhileSending", Tell: hostileHangUp},
}

// 1,000 connections that never authenticate: the relay serves the others.
func hostileCrowd(t *testing.T, r *relay) {
	crowd := 1_000
	if r.MaxIdle != 0 {
		crowd = r.MaxIdle
	}
	h, agent, ph, p := r.pairOnline(t)
	var wg sync.WaitGroup
	dials := make(chan int, crowd)
	for i := range crowd {
		dials <- i
	}
	close(dials)
	for range 16 {
		wg.Go(func() {
			for range dials {
				if _, _, err := r.call(t, "idler", line{}); err != nil {
					t.Errorf("an idler is refused: %v", err)
					return
				}
			}
		})
	}
	for i := range 50 { // while they come
		m := r.parcel("message %d", i)
		agent.send(m.to(ph.key))
		p.wantMessage(h.agent, m)
	}
	wg.Wait()
	for i := range 50 { // and when they are there
		m := r.parcel("message %d", i)
		p.send(m.to(h.agent.key))
		agent.wantMessage(ph.identity, m)
	}
	newcomer := h.newPhone()
	h.pair(agent, newcomer)
	h.authorize(agent, ph, newcomer)
	newcomer.dialSeen(agent, p).wantPresence(h.agent, ph.identity, newcomer.identity)
}

// TCP connections without TLS, TLS connections without a request, requests
// that do not end.
func hostileHalfOpen(t *testing.T, r *relay) {
	for range 20 {
		raw, err := net.Dial("tcp", r.address())
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		conf := r.TLS.Clone()
		if conf.ServerName == "" {
			conf.ServerName, _, _ = net.SplitHostPort(r.address())
		}
		secure, err := tls.Dial("tcp", r.address(), conf)
		if err != nil {
			t.Fatal(err)
		}
		defer secure.Close()
		slow, err := tls.Dial("tcp", r.address(), conf)
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		_, _ = slow.Write([]byte("GET /v1/ws HTTP/1.1\r\nHost: relay\r\nUpgrade: webs"))
	}
	h, agent, ph, p := r.pairOnline(t)
	m := r.parcel("through")
	agent.send(m.to(ph.key))
	p.wantMessage(h.agent, m)
}

// A phone whose network vanishes silently finds every stored message after it
// reconnects, in order, whatever the relay believed meanwhile.
func hostileSilent(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	for round := range 3 {
		wire := r.proxy(t)
		p := ph.dial(line{through: wire})
		agent.wantOnline(ph.identity)
		before, lost, after := r.parcels(5), r.parcels(40), r.parcels(5)
		for _, m := range before {
			agent.send(m.to(ph.key))
		}
		p.wantMessages(h.agent, before...)
		p.wantConfirmed()
		wire.Freeze()
		for _, m := range lost {
			agent.send(m.to(ph.key))
		}
		agent.wantNothing() // the relay takes the phone for present

		if round == 1 {
			wire.Cut() // the relay notices before the phone is back
			agent.wantOffline(ph.identity)
		}
		p = ph.dial() // by another network
		if round == 1 {
			agent.wantOnline(ph.identity)
		}
		for _, m := range after {
			agent.send(m.to(ph.key))
		}
		p.wantMessages(h.agent, lost...)
		p.wantMessages(h.agent, after...)
		p.wantConfirmed()
		ph.leave(p, agent)
	}
}

// The same for the agent, which has a mailbox as well.
func hostileSilentAgent(t *testing.T, r *relay) {
	h := r.home(t)
	wire := r.proxy(t)
	agent := h.dialAgent(line{through: wire})
	ph := h.phone(agent)
	p := ph.dialSeen(agent)
	wire.Freeze()
	ms := r.parcels(40)
	for _, m := range ms {
		p.send(m.to(h.agent.key))
	}
	p.wantNothing()
	agent = h.dialAgent()
	agent.wantMessages(ph.identity, ms...)
	agent.wantNothing()
	p.wantNothing() // a replacement is no news
}

// A tunnel: the network stops, and then delivers what was under way. Nothing
// comes twice or out of order on that connection.
func hostileTunnel(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	wire := r.proxy(t)
	p := ph.dial(line{through: wire})
	agent.wantOnline(ph.identity)
	var sent []parcel
	for range 5 {
		wire.Freeze()
		for i := range 10 {
			m := r.parcel("message %d", len(sent))
			m.live = i%4 == 3
			agent.send(m.to(ph.key))
			sent = append(sent, m)
		}
		agent.wantNothing()
		wire.Thaw()
	}
	p.wantMessages(h.agent, sent...)
	p.wantConfirmed()
}

// A reader that stalls is dropped at some point; those who send to it, and
// everybody else, are not held up.
func hostileStalled(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 2)
	stalled, other := all[0], all[1]
	wire := r.proxy(t)
	stalled.dial(line{through: wire})
	agent.wantOnline(stalled.identity)
	p := other.dial()
	agent.wantOnline(other.identity)
	wire.Freeze()
	big := r.liveParcel("big").grown(maxLiveFrame)
	for i := range 64 { // 32 MiB
		agent.send(big.to(stalled.key))
		m := r.liveParcel("message %d", i)
		agent.send(m.to(other.key))
		for { // whatever comes of the stalled one
			f := p.want("the message")
			if f.GetPresenceEvent() == nil {
				if string(f.GetMessage().GetCiphertext()) != string(m.ciphertext) {
					p.instead("the message", f)
				}
				break
			}
		}
	}
	// What waits for the stalled one is its own; the agent has heard of nothing
	// but its absence.
	agent.send(framePresenceRequest())
	for {
		f := agent.want("PresenceList")
		if f.GetPresenceList() != nil {
			break
		}
		if f.GetPeerOffline() == nil && f.GetPresenceEvent() == nil {
			agent.instead("PeerOffline or OFFLINE", f)
		}
	}
}

// Whatever strangers send, a conversation goes on.
func hostileGarbage(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	for i := range 100 {
		stranger := r.stranger(t)
		for range i%3 + 1 {
			stranger.sendRaw(randomBytes(i * 13))
		}
		if i%2 == 0 {
			stranger.drop()
		}
		m := r.parcel("message %d", i)
		agent.send(m.to(ph.key))
		p.wantMessage(h.agent, m)
	}
	agent.wantNothing()
}

// A sender that breaks off has sent what it sent: what arrived whole counts,
// the rest does not, and the order holds.
func hostileHangUp(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	ms := r.parcels(60)
	next := 0
	for round := range 6 {
		p := ph.dial()
		for range 10 {
			if err := p.post(ms[next].to(h.agent.key)); err != nil {
				t.Fatalf("failed to send: %v", err)
			}
			next++
		}
		switch round % 3 {
		case 0:
			p.wantNothing()
			p.drop()
		case 1:
			p.close() // goodbye is read after the messages
		case 2:
			p.wantNothing()
			// And half a frame more.
			w, err := p.conn.Writer(t.Context(), websocket.MessageBinary)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.Write(make([]byte, 40_000))
			p.drop()
		}
	}
	var got []string
	for len(got) < next {
		f := agent.want("a message")
		if f.GetPresenceEvent() != nil {
			continue
		}
		got = append(got, labelOf(f.GetMessage().GetCiphertext()))
	}
	for i, label := range got {
		if label != labelOf(ms[i].ciphertext) {
			t.Fatalf("message %d is %q", i, label)
		}
	}
}
