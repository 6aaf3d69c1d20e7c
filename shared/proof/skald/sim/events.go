package sim

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/gateway"
)

// reap deals with the tasks that have ended, in the order in which they began.
func (s *sim) reap() {
	for {
		i := slices.IndexFunc(s.tasks, func(t *task) bool { return t.done })
		if i < 0 {
			return
		}
		t := s.tasks[i]
		s.tasks = slices.Delete(s.tasks, i, i+1)
		if s.last == t {
			s.last = nil
		}
		s.ended(t)
	}
}

func (s *sim) ended(t *task) {
	if t.err != nil {
		s.watchText("error", t.err.Error())
	}
	if s.trace != nil {
		switch {
		case t.killed:
			s.tracef("%v was killed", t)
		case t.err != nil:
			s.tracef("%v ends with an error: %v", t, t.err)
		default:
			s.tracef("%v ends", t)
		}
	}
	s.retire(t.proc)
	if t.proc.dead && s.plan.mode == oneProcess {
		return
	}
	k := t.sock
	if k != nil {
		k.busy = nil
	}
	failed := t.killed || t.err != nil
	switch t.what {
	case "connect":
		s.connectEnded(t, failed)
	case "frame", "confirmed":
		s.eventEnded(t, failed)
	case "disconnect":
		// A function's Disconnect may come again, or not.
		if failed && s.plan.mode == functions {
			if s.chance(500) {
				return
			}
			s.excuse(k.peer)
		}
		k.left, k.gone = true, true
	case "job":
		s.jobEnded(t)
	}
	s.checkEnd(t)
}

// connect has the front announce a new connection.
func (s *sim) connect(k *socket) {
	p := s.handlerProcess()
	e := gateway.ConnectEvent{
		Conn: k.id, Path: skald.Path, At: s.now(),
		RemoteIP: netip.AddrFrom4([4]byte{10, 0, 0, byte(k.peer.ident.index)}),
	}
	t := s.task("connect", p, k)
	s.tracef("%v begins", t)
	t.begin(func(ctx context.Context) (any, error) {
		return p.inst.relay.Connect(ctx, e)
	})
}

func (s *sim) connectEnded(t *task, failed bool) {
	k := t.sock
	res, _ := t.result.(gateway.ConnectResult)
	if failed || !res.Accepted() {
		k.closed, k.left, k.gone = true, true, true
		k.detach()
		return
	}
	k.open, k.openedAt, k.activeAt = true, s.now(), s.now()
	for _, m := range res.First {
		k.down = append(k.down, downFrame{data: m.Data})
	}
}

// handle gives the next event of a connection to a handler.
func (s *sim) handle(k *socket) {
	e := k.up[0]
	if e.kind == upEnd {
		s.tracef("%v: the front sees it closed by the peer", k)
		k.up = k.up[1:]
		k.markClosed()
		k.end()
		return
	}
	k.activeAt = s.now()
	e.attempts++
	p := s.handlerProcess()
	what := "frame"
	if e.kind == upPong {
		what = "confirmed"
	}
	t := s.task(what, p, k)
	t.ev = e
	s.tracef("%v begins: %s (attempt %d)", t, e.what, e.attempts)
	if e.kind == upPong {
		ev := gateway.ConfirmedEvent{Conn: k.id, Marks: slices.Clone(e.marks), At: s.now()}
		t.begin(func(ctx context.Context) (any, error) {
			return nil, p.inst.relay.Confirmed(ctx, ev)
		})
		return
	}
	ev := gateway.FrameEvent{Conn: k.id, Data: slices.Clone(e.data), At: s.now()}
	if s.plan.mode == functions {
		ev.ID = "f" + itoa(e.id)
	}
	if e.attempts == 1 && k.joins > 0 {
		k.handled++
	}
	if m := e.msg; m != nil {
		m.attempts++
		if m.begun == 0 {
			m.begun = s.steps
		}
		m.ended = 0
	}
	t.begin(func(ctx context.Context) (any, error) {
		return p.inst.relay.Frame(ctx, ev)
	})
}

func (s *sim) eventEnded(t *task, failed bool) {
	k, e := t.sock, t.ev
	if failed && s.plan.mode == functions {
		if e.attempts < maxAttempts {
			return // it stays the first in the queue
		}
		s.violate("jobs", "%v fails again and again: %v", t, t.err)
	}
	if len(k.up) > 0 && k.up[0] == e {
		k.up = k.up[1:]
	}
	if e.msg != nil {
		e.msg.ended = s.steps
	}
	if failed && !k.closed {
		s.tracef("%v: the front closes it because its handler has failed", k)
		k.markClosed()
		k.dropUpExceptRunning()
		k.end()
	}
}

// pong is a peer that answers a ping: it has what was sent before.
func (s *sim) pong(k *socket) {
	n := 1 + s.rng.IntN(len(k.read))
	e := &upEvent{kind: upPong, what: "marks"}
	for _, d := range k.read[:n] {
		e.marks = append(e.marks, d.mark)
	}
	k.read = slices.Clone(k.read[n:])
	if s.pongForAll {
		for _, d := range k.down {
			if d.mark != 0 {
				e.marks = append(e.marks, d.mark)
			}
		}
	}
	if s.trace != nil {
		for _, m := range e.marks {
			e.what += " " + itoa(int(m&^(1<<62)))
		}
	}
	k.up = append(k.up, e)
	s.tracef("%v answers a ping: %s", k, e.what)
}

func (s *sim) disconnect(k *socket) {
	p := s.handlerProcess()
	ev := gateway.DisconnectEvent{Conn: k.id, Code: gateway.CloseAbnormal, At: s.now()}
	t := s.task("disconnect", p, k)
	s.tracef("%v begins", t)
	t.begin(func(ctx context.Context) (any, error) {
		return nil, p.inst.relay.Disconnect(ctx, ev)
	})
}

func (s *sim) sweep() {
	s.sweepDue = false
	p := s.handlerProcess()
	t := s.task("sweep", p, nil)
	s.tracef("%v begins", t)
	t.begin(func(ctx context.Context) (any, error) {
		return nil, p.inst.relay.Sweep(ctx)
	})
}

// letTimePass lets seconds pass, or days if nobody is at work: no handler runs
// for days.
func (s *sim) letTimePass() {
	d := time.Duration(1+s.rng.IntN(5)) * time.Second
	if len(s.tasks) == 0 && !slices.ContainsFunc(s.sockList, (*socket).unfinished) {
		switch n := s.rng.IntN(10); {
		case n < 3:
			d = 31 * time.Second
		case n < 5:
			d = 121 * time.Second
		case n < 7:
			d = 11 * time.Minute
		case s.plan.long && n < 9:
			d = time.Duration(1+s.rng.IntN(4)) * 24 * time.Hour
		case s.plan.long:
			d = namespaceTTL + time.Hour
		}
		s.sweepDue = true
	}
	s.tracef("%v pass", d)
	s.wait(d)
}

// setClock is an operator, or a time server, that sets the clock.
func (s *sim) setClock() {
	by := time.Duration(s.rng.IntN(7200)-3600) * time.Second
	if s.plan.long && s.chance(300) {
		by *= 100
	}
	if by < 0 {
		s.setBack = true
	}
	s.skew += by
	s.tick()
	// What waits for minutes at most, as notices do, may count as expired now.
	for _, k := range s.sockList {
		clear(k.want)
	}
	s.tracef("the clock is set by %v", by)
}
