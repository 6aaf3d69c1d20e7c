package engine

import (
	"context"
	"slices"
	"time"
)

type choiceKind uint8

const (
	doOp choiceKind = iota + 1
	doHandle
	doRead
	doPong
	doNotice
	doLeave
	doJob
	doAct
	doWait
	doSweep
	doSoon
)

// choice is one thing that can happen next.
type choice struct {
	kind   choiceKind
	weight int
	op     *waiting
	sock   *Socket
	job    *job
	act    func()
}

// fault draws a fault, of which the plan allows only so many.
func (e *Engine) fault(permille int) bool {
	if permille == 0 || e.calm || e.faults >= e.Plan.Most || !e.Chance(permille) {
		return false
	}
	e.faults++
	return true
}

// turn lets one thing happen.
func (e *Engine) turn() bool {
	e.pause()
	e.reap()
	if e.failure != nil {
		return false
	}
	c, ok := e.choose()
	if !ok {
		return false
	}
	e.Step++
	e.do(c)
	e.tick()
	e.reap()
	return true
}

func (e *Engine) choose() (choice, bool) {
	if e.last != nil && e.Chance(e.Plan.Stick*10) {
		for _, w := range e.gate {
			if w.task == e.last && w.frozen <= e.Step {
				return choice{kind: doOp, op: w}, true
			}
		}
	}
	frozen := e.listChoices()
	if len(e.choices) == 0 {
		if frozen {
			for _, w := range e.gate {
				w.frozen = 0
			}
			return e.choose()
		}
		if len(e.tasks) > 0 {
			return e.chooseLater()
		}
		return choice{}, false
	}
	total := 0
	for _, c := range e.choices {
		total += c.weight
	}
	n := e.Rand.IntN(total)
	for _, c := range e.choices {
		if n < c.weight {
			return c, true
		}
		n -= c.weight
	}
	panic("unreachable")
}

func (e *Engine) listChoices() (frozen bool) {
	e.choices = e.choices[:0]
	add := func(c choice) { e.choices = append(e.choices, c) }
	for _, w := range e.gate {
		if w.frozen > e.Step && !e.calm {
			frozen = true
			continue
		}
		add(choice{kind: doOp, weight: 20, op: w})
	}
	if e.recovering {
		return frozen // nothing else until the process is ready
	}
	if len(e.soon) > 0 {
		add(choice{kind: doSoon, weight: 10})
	}
	for _, k := range e.list {
		e.listSocket(k, add)
	}
	for i := range e.jobs {
		if e.due(i) {
			add(choice{kind: doJob, weight: 5, job: e.jobs[i]})
		}
	}
	if e.sweepDue {
		add(choice{kind: doSweep, weight: 2})
	}
	if !e.calm {
		e.world.Acts(func(weight int, act func()) {
			if weight > 0 {
				add(choice{kind: doAct, weight: weight, act: act})
			}
		})
		add(choice{kind: doWait, weight: 1})
	}
	return frozen
}

func (e *Engine) listSocket(k *Socket, add func(choice)) {
	if k.left && !k.attached {
		return
	}
	if k.open && k.busy == nil && len(k.up) > 0 && !k.retryAt.After(e.Now()) {
		add(choice{kind: doHandle, weight: 10, sock: k})
	}
	if k.attached && k.open && (len(k.down) > 0 || k.closed) {
		add(choice{kind: doRead, weight: 10, sock: k})
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

// chooseLater lets time pass for a task that waits for a timer.
func (e *Engine) chooseLater() (choice, bool) {
	if e.waited++; e.waited > 60 {
		e.Violate("stuck", "%v waits for ever", e.tasks[0])
		return choice{}, false
	}
	e.wait(time.Second)
	e.reap()
	c, ok := e.choose()
	e.waited = 0
	return c, ok
}

func (e *Engine) do(c choice) {
	e.note(c.kind, e.Step, 0)
	switch c.kind {
	case doOp:
		e.releaseOp(c.op)
	case doHandle:
		e.handle(c.sock)
	case doRead:
		c.sock.peerReads()
	case doPong:
		c.sock.pong()
	case doNotice:
		e.tracef("%v: the front notices that the peer is gone", c.sock)
		c.sock.closed = true
		c.sock.end()
	case doLeave:
		e.disconnect(c.sock)
	case doJob:
		e.runJob(c.job)
	case doAct:
		c.act()
	case doWait:
		e.letTimePass()
	case doSweep:
		e.sweep()
	case doSoon:
		do := e.soon[0]
		e.soon = e.soon[1:]
		do()
	}
}

// releaseOp lets a waiting operation happen, or not.
func (e *Engine) releaseOp(w *waiting) {
	t := w.task
	if !e.calm && w.frozen == 0 && e.Chance(e.Plan.Freeze) {
		w.frozen = e.Step + 10 + e.Rand.IntN(150)
		e.tracef("%v is held up before %s", t, e.describeOp(&w.op))
		return
	}
	v := e.verdict(w)
	e.note(doOp, t.ID, v)
	e.last = t
	if v != run {
		t.Faulty = true
	}
	if v == fail || v == die {
		e.traceOp(w, v, nil)
	}
	if v != die && v != doAndDie {
		e.let(w, v)
		return
	}
	e.counts.Crashes++
	if v == die {
		t.proc.kill()
	}
	e.let(w, v)
	e.pause()
	t.proc.kill()
	if e.Plan.Mode == OneProcess {
		e.crash()
		return
	}
	e.killWaiting() // what else the handler was doing
}

// verdict decides whether something goes wrong with an operation.
func (e *Engine) verdict(w *waiting) verdict {
	f := &e.Plan.Faults
	switch {
	case e.fault(f.Crash):
		return die
	case e.fault(f.CrashAfter):
		return doAndDie
	}
	if w.ctx.Err() != nil && w.op.kind == opPost { // its caller has not waited for so long
		if e.Chance(500) {
			return fail
		}
		return doAndFail
	}
	switch w.op.kind {
	case opRead:
		if e.fault(f.Storage) {
			return fail
		}
	case opWrite:
		switch {
		case e.fault(f.Storage):
			return fail
		case e.fault(f.Ambiguous):
			return doAndFail
		}
	case opPost:
		switch {
		case e.fault(f.Post):
			return fail
		case e.fault(f.PostSent):
			return doAndFail
		case e.fault(f.Slow):
			return vanish
		}
	case opClose:
		if e.fault(f.Close) {
			return fail
		}
	case opSend:
		switch {
		case e.fault(f.Queue):
			e.unsent = true
			return fail
		case e.fault(f.Ambiguous):
			return doAndFail
		}
	case opPush:
		if e.fault(f.Post) {
			return fail
		}
	}
	return run
}

// letTimePass lets seconds pass, or hours or days if nobody is at work: no handler
// runs for days.
func (e *Engine) letTimePass() {
	d := time.Duration(1+e.Rand.IntN(5)) * time.Second
	if len(e.tasks) == 0 && !slices.ContainsFunc(e.list, (*Socket).unfinished) {
		long := e.Plan.Long && !slices.ContainsFunc(e.list, (*Socket).pending)
		switch n := e.Rand.IntN(10); {
		case n < 3:
			d = 31 * time.Second
		case n < 5:
			d = 121 * time.Second
		case n < 7:
			d = 11 * time.Minute
		case long && n < 8:
			d = time.Duration(1+e.Rand.IntN(8)) * time.Hour
		case long:
			d = time.Duration(1+e.Rand.IntN(3)) * 24 * time.Hour
		}
		e.sweepDue = true
	}
	e.tracef("%v pass", d)
	e.wait(d)
}

func (e *Engine) sweep() {
	e.sweepDue = false
	p := e.handlerProcess()
	e.newTask("sweep", p, nil).begin(func(ctx context.Context) (any, error) { return nil, p.relay.Sweep(ctx) })
}
