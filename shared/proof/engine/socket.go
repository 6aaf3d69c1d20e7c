package engine

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"blindpost/shared/gateway"
)

// Socket is one connection with both its ends.
type Socket struct {
	ID   gateway.Conn
	Path string
	// Name is what a trace calls its peer.
	Name string
	// Owner belongs to the world.
	Owner any
	// Code is with which the relay has closed it, 0 if it has not.
	Code gateway.CloseCode
	// Dialed is the step at which it was dialed, OpenedAt the time at which it was open.
	Dialed   int
	OpenedAt time.Time

	engine *Engine

	// The front.
	open      bool // Connect has returned
	closed    bool // no more can be posted
	gone      bool // Gone answers true
	up        []*event
	retryAt   time.Time // when the first of them comes again
	busy      *Task
	down      []Frame
	read      []Frame // read by the peer, no pong yet; only those with a mark
	left      bool    // Disconnect is over, or will never come
	mute      bool    // Disconnect will never come
	endedAt   time.Time
	lateAfter int // step before which Disconnect does not come

	// The peer's end.
	attached bool // the peer reads and writes
	vanished bool // the network is gone and the front does not know
	cutAt    time.Time
}

type eventKind uint8

const (
	upFrame eventKind = iota + 1
	upPong
	upEnd // the peer has closed
)

// event is what the front has received and not yet handled.
type event struct {
	id       int
	kind     eventKind
	data     []byte
	text     bool
	marks    []uint64
	attempts int
	again    bool // it is handled once more although it was handled well
}

func (k *Socket) String() string { return string(k.ID) + "(" + k.Name + ")" }

// Open reports whether the front takes messages for it.
func (k *Socket) Open() bool { return k.open && !k.closed }

// Attached reports whether the peer is still at its end.
func (k *Socket) Attached() bool { return k.attached }

// Queued is how many frames of the peer wait to be handled.
func (k *Socket) Queued() int { return len(k.up) }

// Dial has a peer ask for a connection. World.Connected gets the answer.
func (e *Engine) Dial(owner any, name, path string, header http.Header, remote byte) *Socket {
	k := &Socket{
		engine: e, ID: gateway.Conn("c" + strconv.Itoa(len(e.list)+1)),
		Name: name, Owner: owner, Path: path, attached: true, Dialed: e.Step,
	}
	e.socks[k.ID] = k
	e.list = append(e.list, k)
	e.connect(k, header, remote)
	return k
}

// Send sends a frame of the peer.
func (k *Socket) Send(data []byte, text bool) {
	if !k.attached || k.closed {
		return
	}
	e := k.engine
	e.frameCount++
	e.tracef("%v sends %s", k, e.describeData(data, text))
	k.up = append(k.up, &event{id: e.frameCount, kind: upFrame, data: data, text: text})
}

// HangUp ends the connection from the peer's side, properly.
func (k *Socket) HangUp() {
	k.engine.tracef("%v: the peer hangs up", k)
	k.detach()
	if k.closed {
		return
	}
	if k.engine.Plan.Mode == Functions {
		k.closed = true // the front knows at once, whatever still waits in its queue
		k.end()
		return
	}
	k.up = append(k.up, &event{kind: upEnd})
}

// Lose cuts the connection without anyone being told.
func (k *Socket) Lose() {
	e := k.engine
	e.tracef("%v: its network is gone", k)
	k.detach()
	k.vanished, k.cutAt = true, time.Now()
	if n := len(k.up); n > 0 { // of what the peer has sent, some has arrived
		keep := e.Rand.IntN(n + 1)
		if keep == 0 && k.unfinished() {
			keep = 1 // a handler has seen it: it has arrived
		}
		k.up = k.up[:keep]
	}
}

// detach ends the peer's side.
func (k *Socket) detach() {
	if k.attached {
		k.attached = false
		k.engine.world.Ended(k)
	}
}

// processDied is the end of all connections with the process that held them.
func (k *Socket) processDied() {
	if k.left && k.closed {
		return
	}
	k.closed, k.gone, k.left = true, true, true
	k.up, k.read, k.down, k.busy = nil, nil, nil, nil
	k.detach()
}

// unfinished reports whether an event waits to be handled again.
func (k *Socket) unfinished() bool { return len(k.up) > 0 && k.up[0].attempts > 0 }

// pending reports whether a front of functions has something to do with the connection
// before hours may pass: end it, report its end, or have the sweeper find it.
func (k *Socket) pending() bool {
	if k.engine.Plan.Mode != Functions || !k.open || k.left {
		return false
	}
	return !k.mute || time.Since(k.endedAt) < 40*time.Minute
}

// longest is how long a connection of API Gateway may last.
const longest = 2 * time.Hour

// Lapses reports whether the front ends the connection within d because it has lasted as
// long as it may.
func (k *Socket) Lapses(d time.Duration) bool {
	return k.engine.Plan.Mode == Functions && k.open && time.Since(k.OpenedAt)+d >= longest
}

// idleLimit is when a front notices that a peer is silent.
func (e *Engine) idleLimit() time.Duration {
	if e.Plan.Mode == Functions {
		return 10 * time.Minute
	}
	return 120 * time.Second
}

// noticeable reports whether the network is gone and it is time for the front to
// notice.
func (k *Socket) noticeable() bool {
	return k.vanished && k.open && !k.closed && k.busy == nil && len(k.up) == 0 &&
		time.Since(k.cutAt) >= k.engine.idleLimit()
}

// closeOld ends the connections that have lasted as long as they may.
func (e *Engine) closeOld() {
	for _, k := range e.list {
		if !k.closed && k.Lapses(0) {
			e.tracef("%v has lasted as long as it may", k)
			k.closed = true
			k.end()
		}
	}
}

// end has the Disconnect come, or not.
func (k *Socket) end() {
	e := k.engine
	if k.left || k.mute {
		return
	}
	k.endedAt = time.Now()
	if e.Plan.Mode == Functions && !e.calm && e.Chance(e.Plan.Faults.Mute*10) {
		k.mute = true
		e.tracef("%v: its Disconnect will never come", k)
	}
	if e.Chance(300) {
		k.lateAfter = e.Step + e.Rand.IntN(200)
	}
}

// leaving reports whether the Disconnect can come now.
func (k *Socket) leaving() bool {
	return k.open && k.closed && !k.left && !k.mute && k.busy == nil && len(k.up) == 0 &&
		(k.engine.calm || k.lateAfter <= k.engine.Step)
}

// closeByRelay is the Close of a handler.
func (k *Socket) closeByRelay(code gateway.CloseCode) {
	k.closed, k.Code = true, code
	// Our own server stops reading; a queueing front hands on what it has.
	if e := k.engine; e.Plan.Mode == OneProcess && e.Chance(700) {
		k.dropUp()
	}
	k.end()
}

// dropUp forgets what was not handled yet.
func (k *Socket) dropUp() {
	keep := 0
	if k.unfinished() {
		keep = 1
	}
	k.up = k.up[:keep]
}

// peerReads gives the peer the next frame, or the end.
func (k *Socket) peerReads() {
	e := k.engine
	if len(k.down) == 0 {
		e.tracef("%v: the peer sees its end (%d)", k, k.Code)
		k.detach()
		return
	}
	f := k.down[0]
	k.down = k.down[1:]
	if f.mark != 0 {
		k.read = append(k.read, f)
	}
	e.tracef("%v reads %s", k, e.describeData(f.Data, f.Text))
	e.world.Received(k, f)
}

// pong is a peer that answers a ping: it has what was sent before.
func (k *Socket) pong() {
	n := 1 + k.engine.Rand.IntN(len(k.read))
	ev := &event{kind: upPong}
	for _, f := range k.read[:n] {
		ev.marks = append(ev.marks, f.mark)
	}
	k.read = slices.Clone(k.read[n:])
	k.up = append(k.up, ev)
	k.engine.tracef("%v answers a ping", k)
}
