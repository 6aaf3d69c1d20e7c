package engine

import (
	"bytes"
	"context"

	"blindpost/shared/gateway"
)

// stepFront makes every action a step.
type stepFront struct{ e *Engine }

var _ gateway.Front = stepFront{}

func (f stepFront) Post(ctx context.Context, c gateway.Conn, m gateway.Message) (out gateway.Outcome, err error) {
	t := taskOf(ctx)
	m.Data = bytes.Clone(m.Data)
	err = t.step(ctx, op{kind: opPost, name: "post", conn: c, msg: m}, func() error {
		out, err = f.e.post(t, c, m)
		return err
	})
	return out, err
}

func (f stepFront) Close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	t := taskOf(ctx)
	return t.step(ctx, op{kind: opClose, name: "close", conn: c, note: reason}, func() error {
		k := f.e.socks[c]
		if k == nil || !k.Open() {
			return gateway.ErrGone
		}
		k.closeByRelay(code)
		return nil
	})
}

func (f stepFront) Stat(ctx context.Context, c gateway.Conn) (st gateway.Stat, err error) {
	t := taskOf(ctx)
	err = t.step(ctx, op{kind: opStat, name: "stat", conn: c}, func() error {
		k := f.e.socks[c]
		if k == nil || !k.Open() {
			return gateway.ErrGone
		}
		st = gateway.Stat{ConnectedAt: k.OpenedAt, LastActiveAt: f.e.Now()}
		return nil
	})
	return st, err
}

func (f stepFront) Gone(c gateway.Conn) bool {
	if f.e.Plan.Mode == Functions {
		return false // API Gateway cannot tell without being asked
	}
	k := f.e.socks[c]
	return k == nil || k.gone
}

// post hands a frame to a connection.
func (e *Engine) post(t *Task, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	k := e.socks[c]
	if k != nil && e.slow {
		k.closed = true
		k.dropUp()
		k.end()
	}
	taken := k != nil && k.Open()
	if taken && k.attached && !k.vanished {
		k.down = append(k.down, Frame{Data: m.Data, Text: m.Text, mark: m.Mark, Step: e.Step})
	}
	e.world.Posted(t, k, m, taken)
	switch {
	case !taken:
		return 0, gateway.ErrGone
	case e.Plan.Mode == Functions:
		return gateway.Sent, nil
	}
	return gateway.Pending, nil
}

// frontOfTask is what a relay gets: it finds its schedule by the engine that has made
// it, so that a mutation can stand in between.
type frontOfTask struct{ e *Engine }

var _ gateway.Front = frontOfTask{}

func (f frontOfTask) Post(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	return f.e.front.Post(ctx, c, m)
}

func (f frontOfTask) Close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	return f.e.front.Close(ctx, c, code, reason)
}

func (f frontOfTask) Stat(ctx context.Context, c gateway.Conn) (gateway.Stat, error) {
	return f.e.front.Stat(ctx, c)
}

func (f frontOfTask) Gone(c gateway.Conn) bool {
	f.e.mu.Lock()
	defer f.e.mu.Unlock()
	return f.e.front.Gone(c)
}
