package sim

// What peers do of their own accord. Weights make the usual things frequent.

// option is something a peer may do.
type option struct {
	weight int
	do     func()
}

// canAct reports whether there is something that a peer may do now.
func (p *peer) canAct() bool {
	k := p.sock
	if k == nil {
		return p.agent || p.paired || p.openToken() != nil
	}
	return k.authed || p.sim.plan.churn > 0
}

// openToken is a token that a phone may have scanned. It may be old.
func (p *peer) openToken() *pairingWindow {
	if p.agent || p.pairing != nil {
		return nil
	}
	ws := p.space.windows
	for i := len(ws) - 1; i >= 0 && i >= len(ws)-2; i-- {
		if ws[i].ready && (!ws[i].closed || p.sim.chance(100)) {
			return ws[i]
		}
	}
	return nil
}

func (p *peer) act() {
	s := p.sim
	k := p.sock
	if k == nil {
		p.comeBack()
		return
	}
	churn := s.plan.churn
	if !k.authed {
		// It has waited long enough.
		if s.rng.IntN(20) < churn {
			p.leaveBehind(k)
		}
		return
	}
	options := []option{
		{churn, func() { s.tracef("%v closes %v", p, k); k.peerCloses() }},
		{churn, func() { s.tracef("%v: the network of %v is gone", p, k); k.networkGone() }},
		{churn, func() { p.leaveBehind(k); p.comeBack() }},
	}
	if len(k.up) < s.plan.queued {
		if len(s.messages) < s.plan.messages {
			options = append(options,
				option{20, func() { k.sendMessage(p.someone(), false) }},
				option{10, func() { k.sendMessage(p.someone(), true) }})
		}
		options = append(options, option{1, k.sendPresenceRequest})
		if s.chance(100) {
			options = append(options, option{2, k.sendNonsense})
		}
		if p.agent {
			options = append(options, p.agentOptions(k)...)
		} else if s.plan.pairing > 0 && p.openToken() != nil {
			options = append(options, option{s.plan.pairing, p.pair})
		}
	}
	total := 0
	for _, o := range options {
		total += o.weight
	}
	if total == 0 {
		return
	}
	n := s.rng.IntN(total)
	for _, o := range options {
		if n < o.weight {
			o.do()
			return
		}
		n -= o.weight
	}
}

func (p *peer) agentOptions(k *socket) []option {
	s := p.sim
	out := []option{
		{s.plan.pairing * 2, func() { k.sendPairingStart(uint32(s.rng.IntN(3)) * 60) }},
		{s.plan.pairing, k.sendPairingStop},
		{1, func() { k.sendAuthorize(p.list) }},
	}
	if s.plan.revoking > 0 {
		out = append(out, option{s.plan.revoking, func() {
			phones := p.space.phones
			delete(p.list, phones[s.rng.IntN(len(phones))])
			k.sendAuthorize(p.list)
		}})
	}
	return out
}

// someone is another member of the namespace, most often the agent or a phone
// of it; phones may write to each other.
func (p *peer) someone() *peer {
	s := p.sim
	if !p.agent && s.chance(700) {
		return p.space.agent
	}
	all := p.space.members()
	if len(s.spaces) > 1 && s.chance(30) {
		all = s.peers // also those of another namespace, whom it cannot reach
	}
	for {
		if q := all[s.rng.IntN(len(all))]; q != p {
			return q
		}
	}
}

// leaveBehind is a peer that gives up a connection without a word: for the front
// it is still there.
func (p *peer) leaveBehind(k *socket) {
	p.sim.tracef("%v leaves %v behind", p, k)
	k.networkGone()
}

// comeBack opens a connection.
func (p *peer) comeBack() {
	s := p.sim
	if p.agent {
		p.connect(asAgent)
		return
	}
	token := p.openToken()
	if p.paired && (token == nil || s.chance(900)) {
		if p.refused > 2 && !s.calm && s.chance(800) {
			return // backs off
		}
		if s.chance(100) {
			p.device = newDevice(p)
		}
		if !s.calm && s.chance(20) {
			p.impersonate()
			return
		}
		p.connect(asClient)
		return
	}
	if token != nil {
		p.pair()
	}
}

// impersonate connects with the key of another phone, which it does not have.
func (p *peer) impersonate() {
	k := p.sim.dial(p, asImpostor)
	k.claims = p.space.phones[p.sim.rng.IntN(len(p.space.phones))]
	if k.claims == p {
		k.role = asClient
	}
	p.sock = k
	p.sim.connect(k)
}

// newDevice is a phone's push token after the provider has changed it.
func newDevice(p *peer) string {
	return p.device[:len(p.device)-1] + string('0'+(p.device[len(p.device)-1]-'0'+1)%10)
}

func (p *peer) connect(role authRole) {
	k := p.sim.dial(p, role)
	p.sock = k
	p.sim.connect(k)
}

// pair shows a token, over a connection of its own.
func (p *peer) pair() {
	w := p.openToken()
	if w == nil {
		return
	}
	if !p.sim.calm && p.sim.chance(50) {
		w = &pairingWindow{token: challenge(1 << 40), admitted: make(map[*socket]bool)} // a guess
	}
	k := p.sim.dial(p, asPairing)
	k.token = w
	p.pairing = k
	p.sim.connect(k)
}
