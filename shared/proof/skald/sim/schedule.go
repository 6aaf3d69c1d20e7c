package sim

import (
	"time"
)

type choiceKind uint8

const (
	doTask choiceKind = iota + 1
	doHandle
	doDeliver
	doPong
	doNotice
	doLeave
	doJob
	doPeer
	doWait
	doJump
	doSweep
)

// choice is one thing that can happen next.
type choice struct {
	kind   choiceKind
	weight int
	task   *task
	sock   *socket
	job    *job
	peer   *peer
}

// chance draws an event of a probability in permille.
func (s *sim) chance(permille int) bool { return s.rng.IntN(1000) < permille }

// fault draws a fault, of which the plan allows only so many.
func (s *sim) fault(permille int) bool {
	if permille == 0 || s.calm || s.faults >= s.plan.most || !s.chance(permille) {
		return false
	}
	s.faults++
	return true
}

// turn lets one thing happen.
func (s *sim) turn() bool {
	s.pause()
	s.reap()
	if s.failure != nil {
		return false
	}
	c, ok := s.choose()
	if !ok {
		return false
	}
	s.steps++
	s.do(c)
	s.pause()
	s.reap()
	return true
}

func (s *sim) choose() (choice, bool) {
	if t := s.last; t != nil && t.parked && t.frozen <= s.steps && s.chance(s.plan.stick*10) {
		return choice{kind: doTask, task: t}, true
	}
	s.choices = s.choices[:0]
	add := func(c choice) { s.choices = append(s.choices, c) }
	frozen := 0
	for _, t := range s.tasks {
		if !t.parked {
			continue
		}
		if t.frozen > s.steps {
			frozen++
			continue
		}
		add(choice{kind: doTask, weight: 20, task: t})
	}
	for _, k := range s.sockList {
		if k.left && !k.attached {
			continue
		}
		if k.open && k.busy == nil && len(k.up) > 0 {
			add(choice{kind: doHandle, weight: 10, sock: k})
		}
		if k.attached && k.open && (len(k.down) > 0 || k.closed) {
			add(choice{kind: doDeliver, weight: 10, sock: k})
		}
		if len(k.read) > 0 && !k.vanished && !k.closed {
			add(choice{kind: doPong, weight: 5, sock: k})
		}
		if k.noticeable() {
			add(choice{kind: doNotice, weight: 5, sock: k})
		}
		if k.leaving() {
			add(choice{kind: doLeave, weight: 5, sock: k})
		}
	}
	for i := range s.jobs {
		if s.due(i) {
			add(choice{kind: doJob, weight: 5, job: s.jobs[i]})
		}
	}
	if s.sweepDue {
		add(choice{kind: doSweep, weight: 2})
	}
	if !s.calm {
		for _, p := range s.peers {
			if p.canAct() {
				add(choice{kind: doPeer, weight: 4, peer: p})
			}
		}
		add(choice{kind: doWait, weight: 1})
		if s.plan.jumps {
			add(choice{kind: doJump, weight: 1})
		}
	}
	if len(s.choices) == 0 {
		if frozen > 0 {
			for _, t := range s.tasks {
				t.frozen = 0
			}
			return s.choose()
		}
		if len(s.tasks) > 0 {
			return s.chooseLater()
		}
		return choice{}, false
	}
	total := 0
	for _, c := range s.choices {
		total += c.weight
	}
	n := s.rng.IntN(total)
	for _, c := range s.choices {
		if n < c.weight {
			return c, true
		}
		n -= c.weight
	}
	panic("unreachable")
}

// chooseLater lets time pass for a task that waits for a timer.
func (s *sim) chooseLater() (choice, bool) {
	if s.waited++; s.waited > 10 {
		s.violate(propStuck, "%v waits for ever", s.tasks[0])
		return choice{}, false
	}
	s.wait(time.Second)
	s.pause()
	s.reap()
	c, ok := s.choose()
	s.waited = 0
	return c, ok
}

func (s *sim) do(c choice) {
	switch c.kind {
	case doTask:
		s.releaseTask(c.task)
		return
	case doHandle:
		s.note(c.kind, 0, 0)
		s.handle(c.sock)
	case doDeliver:
		c.sock.deliver()
	case doPong:
		s.pong(c.sock)
	case doNotice:
		s.tracef("%v: the front notices that the peer is gone", c.sock)
		c.sock.markClosed()
		c.sock.end()
	case doLeave:
		s.disconnect(c.sock)
	case doJob:
		s.runJob(c.job)
	case doPeer:
		c.peer.act()
	case doWait:
		s.letTimePass()
	case doJump:
		s.setClock()
	case doSweep:
		s.sweep()
	}
	s.note(c.kind, s.steps, 0)
}

// releaseTask lets a waiting operation happen, or not.
func (s *sim) releaseTask(t *task) {
	if !s.calm && s.chance(s.plan.freeze) && t.frozen == 0 {
		t.frozen = s.steps + 10 + s.rng.IntN(150)
		s.tracef("%v is held up before %s", t, s.describeOp(t.op))
		return
	}
	v := s.verdict(t)
	s.note(doTask, t.id, v)
	s.last = t
	again := s.plan.mode == functions // what dies is begun again, from its beginning
	if v == fail || v == die {
		s.mishaps++
		if v == fail || !again {
			s.blame(t)
		}
		s.traceOp(t, v, nil)
	}
	if (v == die || v == doAndDie) && s.plan.mode == oneProcess {
		if v == doAndDie {
			t.parked = false
			t.release <- v
			s.pause()
		}
		s.crash()
		return
	}
	if v == die || v == doAndDie {
		s.counts.Crashes++
		if v == die {
			t.proc.kill()
		}
		t.parked = false
		t.release <- v
		s.pause()
		t.proc.kill()
		s.mishaps++
		return
	}
	t.parked = false
	t.release <- v
	if v == doAndFail {
		s.pause()
		s.mishaps++
		if !again {
			s.blame(t)
		}
	}
}

// verdict decides whether something goes wrong with an operation.
func (s *sim) verdict(t *task) verdict {
	f := &s.plan.faults
	switch {
	case s.fault(f.crash):
		return die
	case s.fault(f.crashAfter):
		return doAndDie
	}
	switch t.op.kind {
	case opRead:
		if s.fault(f.storage) {
			return fail
		}
	case opWrite:
		switch {
		case s.fault(f.storage):
			return fail
		case s.fault(f.ambiguous):
			return doAndFail
		}
	case opPost:
		switch {
		case s.fault(f.post):
			return fail
		case s.fault(f.postSent):
			return doAndFail
		case s.fault(f.slow):
			return vanish
		}
	case opClose:
		if s.fault(f.close) {
			return fail
		}
	case opSend:
		switch {
		case s.fault(f.queue):
			return fail
		case s.fault(f.ambiguous):
			return doAndFail
		}
	case opPush:
		if s.fault(f.post) {
			return fail
		}
	}
	return run
}
