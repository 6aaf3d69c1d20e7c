package relay_test

import (
	"bytes"
	"context"
	"slices"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
)

// play is a sequence of steps that is encoded in the bytes of a tape.
type play struct {
	*stage
	tape  []byte
	token []byte         // of the window that was opened last
	bulk  int            // bytes of messages so far
	spoke map[string]int // by sender, the number of the newest connection that it has used
}

// next reads a byte, 0 after the end.
func (p *play) next() byte {
	if len(p.tape) == 0 {
		return 0
	}
	b := p.tape[0]
	p.tape = p.tape[1:]
	return b
}

// pick chooses one of n.
func (p *play) pick(n int) int { return int(p.next()) % n }

// line chooses a connection.
func (p *play) line() *line {
	all := p.lines()
	if len(all) == 0 {
		return p.connect()
	}
	// From the end: 0 is the newest.
	return all[len(all)-1-p.pick(len(all))]
}

// Steps of a story.
const (
	stepConnect = iota // and authenticate: actor, role
	stepFrame          // connection, frame
	stepSpoilt         // the same, with bytes changed
	stepRaw            // connection, length, bytes
	stepText
	stepOversize
	stepBurst // connection, recipient, number
	stepConfirm
	stepDisconnect
	stepReap
	stepJobs
	stepTime
	stepSweep
	stepProvider
	stepStranger // connects and says nothing
	stepWrite    // connection, frame: is on its way
	stepHandle   // connection: what is on its way
	steps
)

// Bounds of the work for one story.
const (
	maxConns = 40
	maxBulk  = 12 << 20 // bytes; a message counts for at least 8 KB
)

func (p *play) run() {
	p.spoke = map[string]int{}
	if p.next()%4 == 3 {
		p.front.outcome = gateway.Sent
	}
	for len(p.tape) > 0 {
		p.step()
	}
}

func (p *play) step() {
	switch p.pick(steps) {
	case stepConnect:
		if p.front.n >= maxConns {
			return
		}
		l := p.connect()
		x := p.next()
		p.send(l, actors[x%3].auth(int(x/3), l.nonce, p.token))
	case stepFrame:
		l := p.line()
		p.send(l, p.any(l))
	case stepSpoilt:
		l := p.line()
		b := marshal(p.any(l))
		for range 1 + p.pick(3) {
			if len(b) > 0 {
				b[(int(p.next())<<8|int(p.next()))%len(b)] = p.next()
			}
		}
		p.frame(l, b, false)
	case stepRaw:
		l := p.line()
		n := min(p.pick(64), len(p.tape))
		b := p.tape[:n]
		p.tape = p.tape[n:]
		p.secret(b)
		p.frame(l, bytes.Clone(b), false)
	case stepText:
		p.frame(p.line(), []byte("hello"), true)
	case stepOversize:
		x := p.next()
		p.oversize(p.line(), x%2 == 1)
	case stepBurst:
		l := p.line()
		x := p.next()
		for range 1 + p.pick(80) {
			if p.bulk > maxBulk {
				return
			}
			p.send(l, p.message(l, actors[x%3].pub, int(x/3)%4, x/12%4 == 3))
		}
	case stepConfirm:
		l := p.line()
		p.confirm(l, 1+int(p.next()))
	case stepDisconnect:
		p.disconnect(p.line())
		p.inspect()
	case stepReap:
		p.reap()
	case stepJobs:
		p.runJobs()
	case stepTime:
		p.now = p.now.Add([]time.Duration{
			time.Millisecond, time.Second, 31 * time.Second, time.Minute, 301 * time.Second, 11 * time.Minute, 25 * time.Hour, 7 * 24 * time.Hour,
		}[p.pick(8)])
	case stepSweep:
		p.handled("a sweep", p.r.Sweep(context.Background()))
		p.inspect()
	case stepProvider:
		switch x := p.pick(4); x {
		case 3:
			p.down = !p.down
		default:
			p.dead[actors[x].token] = !p.dead[actors[x].token]
		}
	case stepStranger:
		if p.front.n < maxConns {
			p.connect()
		}
	case stepWrite:
		l := p.line()
		x := p.next()
		p.write(l, p.message(l, actors[x%3].pub, int(x/3)%3, false))
	case stepHandle:
		p.flush(p.line())
	}
}

// send sends a frame. An Auth names the peer behind the connection.
func (p *play) send(l *line, f *skaldpb.RelayFrame) {
	if a := f.GetAuth(); a != nil && l.who == "" {
		l.who = string(slices.Concat(a.GetAgent().GetAgentEd25519Pub(), a.GetClient().GetClientEd25519Pub()))
	}
	p.frame(l, marshal(f), false)
}

// message makes a unique message. Its delivery is checked, unless its sender has used a
// newer connection before: no peer does that.
func (p *play) message(l *line, to []byte, size int, live bool) *skaldpb.RelayFrame {
	ciphertext := bytes.Repeat([]byte{0xa5}, []int{4, 40, 4000, 60_000}[size])
	_, _ = p.random.Read(ciphertext[:min(len(ciphertext), 40)])
	p.bulk += max(len(ciphertext), 8<<10)
	if l.who != "" && l.number >= p.spoke[l.who] {
		p.spoke[l.who] = l.number
		p.label(ciphertext)
	}
	p.secret(ciphertext[:min(len(ciphertext), 40)])
	return message(to, ciphertext, live)
}

// any makes a frame that a peer might send on l.
func (p *play) any(l *line) *skaldpb.RelayFrame {
	x := p.next()
	switch kind, y := x%8, x/8; kind {
	case 0, 1:
		return p.message(l, actors[y%3].pub, int(y/3)%3, kind == 1)
	case 2:
		return presenceRequest()
	case 3:
		var keys [][]byte
		for i := range 2 {
			if y>>i&1 == 1 {
				keys = append(keys, actors[1+i].pub)
			}
		}
		if y>>2&1 == 1 {
			keys = append(keys, make([]byte, 31+y>>3&1))
		}
		return authorize(keys...)
	case 4:
		p.token = pairingToken(int(y % 4))
		p.secret(p.token)
		return pairingStart(p.token, []uint32{0, 1, 300, 1 << 31}[y>>2%4])
	case 5:
		return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStop{PairingStop: &skaldpb.PairingStop{}}}
	case 6:
		return actors[y%3].auth(int(y/3), l.nonce, p.token)
	default:
		return []*skaldpb.RelayFrame{
			{},
			{Frame: &skaldpb.RelayFrame_Challenge{Challenge: &skaldpb.Challenge{Nonce: make([]byte, 32)}}},
			{Frame: &skaldpb.RelayFrame_PresenceEvent{PresenceEvent: &skaldpb.PresenceEvent{Pubkey: actors[1].pub}}},
			{Frame: &skaldpb.RelayFrame_PeerOffline{}},
		}[y%4]
	}
}

// Frames as bytes of a tape.
const (
	open       = 4              // PairingStart with token 0, ttl 0
	allow1     = 3 + 8*1        // Authorize actor 1
	allow2     = 3 + 8*2        // actor 2
	allowBoth  = 3 + 8*3        // both
	allowNone  = 3              // no actor
	asAgent    = 0              // actor 0, role agent
	asPhone1   = 1 + 3*1        // actor 1, role client
	asPhone2   = 2 + 3*1        // actor 2, role client
	pairPhone1 = 1 + 3*2        // actor 1, role pairing
	pairPhone2 = 2 + 3*2        // actor 2, role pairing
	toPhone1   = 1              // burst of the smallest
	largeTo1   = 1 + 3*3        // burst of the largest
	liveTo1    = 1 + 3*1 + 12*3 // burst of live ones
)

// household pairs both phones: the agent's connection is then the newest but two.
var household = []byte{
	0,
	stepConnect, asAgent, stepFrame, 0, open,
	stepConnect, pairPhone1, stepDisconnect, 0, stepFrame, 0, open,
	stepConnect, pairPhone2, stepDisconnect, 0, stepFrame, 0, allowBoth,
}

func tell(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// stories are where the fuzzer begins.
var stories = [][]byte{
	household,
	// a phone comes, goes without confirming, comes again
	tell(household, []byte{stepBurst, 0, toPhone1, 10, stepConnect, asPhone1, stepConfirm, 0, 4, stepDisconnect, 0,
		stepJobs, stepConnect, asPhone1, stepConfirm, 0, 255}),
	// a long mailbox: the pump waits; live messages meanwhile; then a newer connection
	tell(household, []byte{stepBurst, 0, largeTo1, 30, stepConnect, asPhone1, stepBurst, 1, liveTo1, 5, stepConfirm, 0, 3,
		stepConnect, asPhone1, stepReap, stepConfirm, 0, 255, stepConfirm, 0, 255}),
	// a full mailbox of which the phone confirms a part, and one that expires
	tell(household, []byte{stepBurst, 0, toPhone1, 79, stepBurst, 0, toPhone1, 79, stepConnect, asPhone1, stepConfirm, 0, 99,
		stepTime, 3, stepBurst, 1, toPhone1, 79, stepTime, 7, stepSweep}),
	// revoked while it waits, paired again
	tell(household, []byte{stepConnect, asPhone1, stepBurst, 1, toPhone1, 5, stepFrame, 1, allow2, stepReap, stepJobs,
		stepFrame, 0, open, stepConnect, pairPhone1, stepFrame, 1, allowBoth, stepConnect, asPhone1}),
	// all peers disconnect, the namespace expires
	tell(household, []byte{stepConnect, asPhone2, stepBurst, 1, toPhone1, 5, stepDisconnect, 0, stepDisconnect, 0, stepJobs,
		stepTime, 7, stepTime, 6, stepSweep, stepConnect, asPhone2, stepConnect, asAgent}),
	// a front that confirms nothing, a provider that fails
	tell([]byte{3}, household[1:], []byte{stepProvider, 1, stepBurst, 0, toPhone1, 3, stepJobs, stepProvider, 3,
		stepBurst, 0, toPhone1 + 1, 3, stepJobs, stepTime, 1, stepJobs, stepConnect, asPhone1, stepConnect, asPhone1, stepReap}),
	// what is on its way on an old connection comes after newer messages
	tell(household, []byte{stepConnect, asPhone1, stepWrite, 1, toPhone1, stepWrite, 1, toPhone1, stepConnect, asAgent,
		stepBurst, 0, toPhone1, 2, stepHandle, 2, stepReap, stepConfirm, 0, 255}),
	// the pump waits, and goes on, with newer messages of both kinds behind it
	tell(household, []byte{stepBurst, 0, largeTo1, 60, stepConnect, asPhone1, stepBurst, 1, liveTo1, 2, stepBurst, 1, toPhone1, 2,
		stepBurst, 1, liveTo1, 2, stepConfirm, 0, 255, stepConfirm, 0, 255, stepBurst, 1, liveTo1, 2, stepConfirm, 0, 255,
		stepConfirm, 0, 255, stepConfirm, 0, 255, stepBurst, 1, liveTo1, 2}),
	// a phone goes twice while it drains, with live messages waiting
	tell(household, []byte{stepBurst, 0, largeTo1, 60, stepConnect, asPhone1, stepBurst, 1, liveTo1, 5, stepConnect, asPhone1,
		stepReap, stepBurst, 1, liveTo1, 5, stepDisconnect, 0, stepJobs, stepConnect, asPhone1, stepConfirm, 0, 255}),
	// rubbish of all kinds
	tell(household, []byte{stepSpoilt, 0, 8, 2, 0, 5, 77, 0, 9, 1, stepRaw, 0, 5, 1, 2, 3, 4, 5, stepText, 0, stepStranger, stepText, 0,
		stepStranger, stepRaw, 0, 3, 10, 1, 1, stepOversize, 1, 0, stepReap, stepTime, 2, stepJobs}),
}
