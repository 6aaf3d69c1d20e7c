package sim

import (
	"bytes"
	"context"
	"time"

	"blindpost/shared/gateway"
)

// socket is one connection with both its ends.
type socket struct {
	sim  *sim
	id   gateway.Conn
	peer *peer
	role authRole

	// The front.
	open      bool // Connect has returned
	closed    bool // no more can be posted
	byRelay   bool // closed by the relay
	gone      bool // Gone answers true
	up        []*upEvent
	busy      *task
	down      []downFrame
	read      []downFrame // read by the peer, no pong yet; only those with a mark
	left      bool        // Disconnect is over, or will never come
	mute      bool        // Disconnect will never come
	lateAfter int         // step before which Disconnect does not come
	openedAt  time.Time   // by the relay's clock
	activeAt  time.Time

	// The peer's end.
	attached bool // the peer reads and writes
	vanished bool // the network is gone and the front does not know
	cutAt    time.Time
	nonce    []byte
	handled  int64 // frames that handlers were given, without Auth
	authed   bool  // AuthOk has been read
	token    *pairingWindow
	claims   *peer // of an impostor

	// The model's.
	lane  string // that the connection has joined with
	epoch int64
	joins int
	// joinedAt is when it joined last.
	joinedAt time.Time
	// reopened says that its mailbox has had to be emptied again.
	reopened bool
	view     map[*peer]bool // presence as this connection was told
	want     map[*peer]bool // presence as it must have been told in the end
	posts    map[*message]int
}

type upKind uint8

const (
	upFrame upKind = iota + 1
	upPong
	upEnd // the peer has closed
)

// upEvent is what the front has received and not yet handled.
type upEvent struct {
	id       int
	kind     upKind
	data     []byte
	what     string
	msg      *message
	marks    []uint64
	attempts int
	listed   map[*peer]bool // Authorize: who is on it
	list     bool
	window   *pairingWindow // PairingStart, Auth of a pairing
	nonsense bool
}

type downFrame struct {
	data  []byte
	mark  uint64
	entry *entry
	lost  bool
}

func (k *socket) String() string { return string(k.id) + "(" + k.peer.String() + ")" }

// attach opens a connection of a peer.
func (s *sim) dial(p *peer, role authRole) *socket {
	k := &socket{
		sim: s, peer: p, role: role, attached: true,
		id:   gateway.Conn("c" + itoa(len(s.sockList)+1)),
		view: make(map[*peer]bool), want: make(map[*peer]bool), posts: make(map[*message]int),
	}
	s.socks[k.id] = k
	s.sockList = append(s.sockList, k)
	return k
}

// processDied is the end of all connections with the process that held them.
func (k *socket) processDied() {
	if k.left && k.closed {
		return
	}
	k.markClosed()
	k.gone, k.left = true, true
	k.up, k.read, k.busy = nil, nil, nil
	k.down = nil
	k.detach()
}

func (k *socket) markClosed() {
	if !k.closed {
		k.closed = true
		k.sim.ghost.closed(k)
	}
}

// detach ends the peer's side.
func (k *socket) detach() {
	k.attached = false
	if k.peer.sock == k {
		k.peer.sock = nil
	}
	if k.peer.pairing == k {
		k.peer.pairing = nil
	}
}

// peerCloses ends the connection from the peer's side, properly.
func (k *socket) peerCloses() {
	k.detach()
	if k.closed {
		return
	}
	if k.sim.plan.mode == functions {
		k.markClosed() // the front knows at once, whatever still waits in its queue
		k.end()
		return
	}
	k.up = append(k.up, &upEvent{kind: upEnd})
}

// networkGone cuts the connection without anyone being told.
func (k *socket) networkGone() {
	s := k.sim
	k.detach()
	k.vanished, k.cutAt = true, time.Now()
	// Of what the peer has sent, some has arrived.
	if n := len(k.up); n > 0 {
		keep := s.rng.IntN(n + 1)
		if keep == 0 && k.unfinished() {
			keep = 1 // a handler has seen it: it has arrived
		}
		for _, e := range k.up[keep:] {
			s.dropUp(e)
		}
		k.up = k.up[:keep]
	}
}

// dropUp forgets an event that will never be handled.
func (s *sim) dropUp(e *upEvent) {
	if e.msg != nil && e.msg.ended == 0 {
		e.msg.ended = s.steps
	}
}

// unfinished reports whether an event waits to be handled again.
func (k *socket) unfinished() bool { return len(k.up) > 0 && k.up[0].attempts > 0 }

// idleLimit is when a front notices that a peer is silent.
func (s *sim) idleLimit() time.Duration {
	if s.plan.mode == functions {
		return 10 * time.Minute
	}
	return 120 * time.Second
}

// noticeable reports whether the network is gone and it is time for the front to
// notice.
func (k *socket) noticeable() bool {
	return k.vanished && k.open && !k.closed && k.busy == nil && len(k.up) == 0 &&
		time.Since(k.cutAt) >= k.sim.idleLimit()
}

// end has the Disconnect come, or not.
func (k *socket) end() {
	s := k.sim
	if k.left || k.mute {
		return
	}
	if s.plan.mode == functions && !s.calm && s.chance(s.plan.faults.mute*10) {
		k.mute = true
		s.tracef("%v: its Disconnect will never come", k)
	}
	if s.chance(300) {
		k.lateAfter = s.steps + s.rng.IntN(200)
	}
}

// leaving reports whether the Disconnect can come now.
func (k *socket) leaving() bool {
	return k.open && k.closed && !k.left && !k.mute && k.busy == nil && len(k.up) == 0 &&
		(k.sim.calm || k.lateAfter <= k.sim.steps)
}

// closeByRelay is the Close of a handler.
func (k *socket) closeByRelay() {
	s := k.sim
	k.byRelay = true
	k.markClosed()
	// Our own server stops reading; a queueing front hands on what it has.
	if s.plan.mode == oneProcess && s.chance(700) {
		k.dropUpExceptRunning()
	}
	k.end()
}

func (k *socket) dropUpExceptRunning() {
	keep := 0
	if k.unfinished() {
		keep = 1
	}
	for _, e := range k.up[keep:] {
		k.sim.dropUp(e)
	}
	k.up = k.up[:keep]
}

// stepFront makes every action a step.
type stepFront struct{ s *sim }

var _ gateway.Front = stepFront{}

func (f stepFront) Post(ctx context.Context, c gateway.Conn, m gateway.Message) (out gateway.Outcome, err error) {
	t := taskOf(ctx)
	err = t.step(op{kind: opPost, name: "post", conn: c, data: m.Data}, func() error {
		out, err = f.s.post(t, c, m)
		return err
	})
	return out, err
}

func (f stepFront) Close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) (err error) {
	t := taskOf(ctx)
	return t.step(op{kind: opClose, name: "close", conn: c, note: reason}, func() error {
		k := f.s.socks[c]
		if k != nil && t.sock == k {
			t.closedOwn = true
		}
		if k == nil || !k.open || k.closed {
			return gateway.ErrGone
		}
		k.closeByRelay()
		return nil
	})
}

func (f stepFront) Stat(ctx context.Context, c gateway.Conn) (st gateway.Stat, err error) {
	t := taskOf(ctx)
	err = t.step(op{kind: opStat, name: "stat", conn: c}, func() error {
		k := f.s.socks[c]
		if k == nil || !k.open || k.closed {
			return gateway.ErrGone
		}
		st = gateway.Stat{ConnectedAt: k.openedAt, LastActiveAt: k.activeAt}
		return nil
	})
	return st, err
}

func (f stepFront) Gone(c gateway.Conn) bool {
	k := f.s.socks[c]
	if f.s.plan.mode == functions {
		return false // API Gateway cannot tell without being asked
	}
	return k == nil || k.gone
}

// post hands a frame to a connection.
func (s *sim) post(t *task, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	k := s.socks[c]
	if k != nil && s.slowPost {
		k.markClosed()
		k.dropUpExceptRunning()
		k.end()
	}
	taken := k != nil && k.open && !k.closed
	d := downFrame{data: bytes.Clone(m.Data), mark: m.Mark}
	s.observePost(t, k, &d, taken)
	if !taken {
		return 0, gateway.ErrGone
	}
	d.lost = k.vanished || !k.attached
	if !d.lost {
		k.down = append(k.down, d)
	}
	if s.plan.mode == functions {
		return gateway.Sent, nil
	}
	return gateway.Pending, nil
}

// frontOf is what a relay gets.
type frontOf struct{ inst *instance }

var _ gateway.Front = frontOf{}

func (f frontOf) Post(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	return f.inst.sim.front.Post(ctx, c, m)
}

func (f frontOf) Close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	return f.inst.sim.front.Close(ctx, c, code, reason)
}

func (f frontOf) Stat(ctx context.Context, c gateway.Conn) (gateway.Stat, error) {
	return f.inst.sim.front.Stat(ctx, c)
}

func (f frontOf) Gone(c gateway.Conn) bool {
	f.inst.sim.mu.Lock()
	defer f.inst.sim.mu.Unlock()
	return f.inst.sim.front.Gone(c)
}
