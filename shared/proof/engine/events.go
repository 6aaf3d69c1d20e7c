package engine

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"blindpost/shared/gateway"
)

// maxAttempts is how often an event or a job is tried. The plan has fewer faults, so
// one that fails as often fails for a reason of its own.
const maxAttempts = 20

// upgradeTime is how long API Gateway waits for the answer to an upgrade.
const upgradeTime = 29 * time.Second

// reap deals with the tasks that have ended, in the order in which they began.
func (e *Engine) reap() {
	for {
		i := slices.IndexFunc(e.tasks, func(t *Task) bool { return t.done })
		if i < 0 {
			return
		}
		t := e.tasks[i]
		e.tasks = slices.Delete(e.tasks, i, i+1)
		if e.last == t {
			e.last = nil
		}
		e.taskEnded(t)
	}
}

func (e *Engine) taskEnded(t *Task) {
	switch {
	case t.Killed:
		e.tracef("%v was killed", t)
	case t.Err != nil:
		e.world.Text("error", t.Err.Error())
		e.tracef("%v ends with an error: %v", t, t.Err)
	default:
		e.tracef("%v ends", t)
	}
	e.retire(t.proc)
	e.world.TaskEnded(t)
	if t.ended != nil {
		t.ended(t)
	}
	if t.proc.dead && e.Plan.Mode == OneProcess {
		return
	}
	k := t.Socket
	if k != nil {
		k.busy = nil
	}
	failed := t.Killed || t.Err != nil
	switch t.What {
	case "connect":
		e.connectEnded(t, failed)
	case "frame", "confirmed":
		e.eventEnded(t, failed)
	case "disconnect":
		// A function's Disconnect may come again, or not.
		if failed && e.Plan.Mode == Functions && e.Chance(500) {
			return
		}
		k.left, k.gone = true, true
	case "job":
		e.jobEnded(t, failed)
	}
}

// connect has the front announce a new connection.
func (e *Engine) connect(k *Socket, header http.Header, remote byte) {
	p := e.handlerProcess()
	ev := gateway.ConnectEvent{
		Conn: k.ID, Path: k.Path, Header: header, At: e.Now(), RemoteIP: netip.AddrFrom4([4]byte{10, 0, 0, remote}),
	}
	e.newTask("connect", p, k).begin(func(ctx context.Context) (any, error) { return p.relay.Connect(ctx, ev) })
}

func (e *Engine) connectEnded(t *Task, failed bool) {
	k := t.Socket
	res, _ := t.Result.(gateway.ConnectResult)
	// API Gateway does not wait for ever.
	late := e.Plan.Mode == Functions && e.Now().Sub(t.At) > upgradeTime
	accepted := !failed && !late && res.Accepted()
	if !accepted {
		if failed || late {
			res = gateway.ConnectResult{}
		}
		k.closed, k.left, k.gone = true, true, true
		e.world.Connected(k, false, res)
		k.detach()
		return
	}
	k.open, k.OpenedAt = true, e.Now()
	for _, m := range res.First {
		k.down = append(k.down, Frame{Data: m.Data, Text: m.Text, Step: e.Step})
	}
	e.world.Connected(k, true, res)
}

// handle gives the next event of a connection to a handler.
func (e *Engine) handle(k *Socket) {
	ev := k.up[0]
	if ev.kind == upEnd {
		e.tracef("%v: the front sees it closed by the peer", k)
		k.up = k.up[1:]
		k.closed = true
		k.end()
		return
	}
	ev.attempts++
	p := e.handlerProcess()
	what := "frame"
	if ev.kind == upPong {
		what = "confirmed"
	}
	t := e.newTask(what, p, k)
	t.ev, t.Attempt, t.Data = ev, ev.attempts, ev.data
	if ev.kind == upPong {
		c := gateway.ConfirmedEvent{Conn: k.ID, Marks: slices.Clone(ev.marks), At: e.Now()}
		t.begin(func(ctx context.Context) (any, error) { return nil, p.relay.Confirmed(ctx, c) })
		return
	}
	f := gateway.FrameEvent{Conn: k.ID, Data: slices.Clone(ev.data), Text: ev.text, At: e.Now()}
	if e.Plan.Mode == Functions {
		f.ID = "f" + strconv.Itoa(ev.id)
	}
	t.begin(func(ctx context.Context) (any, error) { return p.relay.Frame(ctx, f) })
}

func (e *Engine) eventEnded(t *Task, failed bool) {
	k, ev := t.Socket, t.ev
	if e.Plan.Mode == Functions {
		if failed {
			if ev.attempts < maxAttempts {
				k.retryAt = e.Now().Add(time.Duration(ev.attempts) * time.Second)
				return // it stays the first in the queue
			}
			e.Violate("events", "%v fails again and again: %v", t, t.Err)
		}
		if !failed && !ev.again && e.fault(e.Plan.Faults.Twice) {
			e.tracef("%v comes again", t)
			ev.again = true
			return
		}
	}
	if len(k.up) > 0 && k.up[0] == ev {
		k.up = k.up[1:]
	}
	if failed && !k.closed {
		e.tracef("%v: the front closes it because its handler has failed", k)
		k.closed, k.Code = true, gateway.CloseInternal
		k.dropUp()
		k.end()
	}
}

func (e *Engine) disconnect(k *Socket) {
	p := e.handlerProcess()
	ev := gateway.DisconnectEvent{Conn: k.ID, Code: gateway.CloseAbnormal, At: e.Now()}
	e.newTask("disconnect", p, k).begin(func(ctx context.Context) (any, error) { return nil, p.relay.Disconnect(ctx, ev) })
}

// Call runs a request to the relay that comes over no connection. ended gets the task
// when it is over; one that was killed has no answer.
func (e *Engine) Call(name string, do func(ctx context.Context, d Instance) (any, error), ended func(*Task)) {
	p := e.handlerProcess()
	t := e.newTask("call", p, nil)
	t.Kind, t.ended = name, ended
	t.begin(func(ctx context.Context) (any, error) { return do(ctx, Instance{p.relay, p.dialect}) })
}
