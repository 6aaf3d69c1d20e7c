package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/table"
)

// Kinds of jobs of the core. Those of a dialect carry its name as a prefix.
const (
	// JobPush wakes a member that has a stored frame.
	JobPush = "push"

	jobLost = "gone" // a connection is lost: its member leaves
	jobEnd  = "end"  // a connection ends, though its front has not said so, or its Disconnect failed
	jobPump = "pump" // the lane of a connection is to be pumped
)

// jobBody is the body of the core's jobs. It holds no content.
type jobBody struct {
	Group  string       `json:"g,omitempty"`
	Member string       `json:"m,omitempty"`
	Seq    int64        `json:"s,omitempty"`
	Conn   gateway.Conn `json:"c,omitempty"`
}

func (r *Relay) sendJob(ctx context.Context, kind, group string, b jobBody) error {
	return r.sendJobAt(ctx, kind, group, b, time.Time{})
}

func (r *Relay) sendJobAt(ctx context.Context, kind, group string, b jobBody, at time.Time) error {
	body, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("failed to encode a job: %w", err)
	}
	return r.enqueue(ctx, queue.Job{Kind: kind, Group: group, Body: body, At: at})
}

func (r *Relay) enqueue(ctx context.Context, j queue.Job) error {
	if err := r.queue.Send(ctx, j); err != nil {
		return fmt.Errorf("failed to send a job: %w", err)
	}
	return nil
}

// Later sends a job of a dialect, to run at a time.
func (r *Relay) Later(ctx context.Context, d Dialect, kind string, body []byte, at time.Time) error {
	return r.enqueue(ctx, queue.Job{Kind: d.Name() + "." + kind, Body: body, At: at})
}

// Next sends a job of a dialect that belongs to a connection. Where the frames of a
// connection wait in a queue, the job runs before the frames that arrive after the job
// was sent; with a time in the future, before those that arrive after that time.
func (r *Relay) Next(ctx context.Context, d Dialect, kind string, id gateway.Conn, body []byte, at time.Time) error {
	return r.enqueue(ctx, queue.Job{Kind: d.Name() + "." + kind, Group: string(id), Body: body, At: at})
}

// wake asks for a push. A failure is only logged: the frame that the push is for is in
// the mailbox already.
func (r *Relay) wake(ctx context.Context, group, key string, seq int64) {
	if err := r.sendJob(ctx, JobPush, "", jobBody{Group: group, Member: key, Seq: seq}); err != nil {
		r.log.WarnContext(ctx, "failed to ask for a push", "error", err)
	}
}

// ReportLost sends a job that lets m leave: a post has found its connection gone. It is
// a job because the caller holds another member.
func (r *Relay) ReportLost(ctx context.Context, m *Member) {
	b := jobBody{Group: m.Group, Member: m.Key, Conn: m.Conn}
	if err := r.sendJob(ctx, jobLost, string(m.Conn), b); err != nil {
		r.log.WarnContext(ctx, "failed to report a lost connection", "error", err)
	}
}

// Job runs a job. It is the queue.Handler of the relay.
func (r *Relay) Job(ctx context.Context, j queue.Job) error {
	if name, _, ok := strings.Cut(j.Kind, "."); ok {
		if d := r.dialect(name); d != nil {
			return d.Job(ctx, j)
		}
		return fmt.Errorf("job of unknown kind %q", j.Kind)
	}
	var b jobBody
	if err := json.Unmarshal(j.Body, &b); err != nil {
		return fmt.Errorf("failed to decode a job of kind %q: %w", j.Kind, err)
	}
	// Where handlers share a process, a crash ends them all: no first attempt of this job
	// has died in the middle while the relay went on.
	again := r.distributed && j.Attempt > 1
	switch j.Kind {
	case JobPush:
		return r.push(ctx, b)
	case jobLost:
		return r.leaveLost(ctx, b, again)
	case jobEnd:
		if known, err := r.endUnreported(ctx, b.Conn, again); known || err != nil || b.Member == "" {
			return err
		}
		return r.leaveLost(ctx, b, again)
	case jobPump:
		return r.pumpAgain(ctx, b.Conn)
	default:
		return fmt.Errorf("job of unknown kind %q", j.Kind)
	}
}

// leaveLost lets a member leave whose connection is lost. The record of the connection
// stays: frames that have arrived before may still be under way. again is as for leave.
func (r *Relay) leaveLost(ctx context.Context, b jobBody, again bool) error {
	release, err := r.Hold(ctx, b.Group, b.Member)
	if err != nil {
		return err
	}
	defer release()
	c, err := r.LoadConn(ctx, b.Conn)
	if err != nil || (c != nil && c.memberLeft && !again) {
		return err
	}
	if c == nil && !again {
		// Either the connection has ended, or its record has expired.
		_, err := r.tryLeave(ctx, b.Group, b.Member, b.Conn)
		return err
	}
	if err := r.leave(ctx, b.Group, b.Member, b.Conn, again); err != nil {
		return err
	}
	if r.distributed && c != nil && c.after != "" {
		// Its admission may have died before it closed that, and its end may never come.
		if err := r.closeBefore(ctx, c); err != nil {
			return err
		}
	}
	return r.changeConn(ctx, b.Conn, table.Op{Set: table.Attrs{recLeft: table.Number(1)}})
}

func (r *Relay) pumpAgain(ctx context.Context, id gateway.Conn) error {
	c, release, err := r.heldConn(ctx, id, (*Conn).Joined)
	if err != nil {
		return err
	}
	defer release()
	if c == nil || !c.Joined() {
		return nil
	}
	return r.pump(ctx, c)
}

// push sends a push to a member that is offline and has a stored frame.
func (r *Relay) push(ctx context.Context, b jobBody) error {
	m, err := r.GetMember(ctx, b.Group, b.Member)
	if err != nil {
		return err
	}
	d := r.dialectOfGroup(b.Group)
	if m == nil || d == nil || m.Token == "" || r.Online(m) || m.stored == 0 {
		return nil
	}
	e, err := r.waiting(ctx, m, b.Seq)
	if err != nil || e == nil {
		return err
	}
	n, ok := d.Wake(m, e.frame)
	if !ok {
		return nil
	}
	err = r.pusher.Send(ctx, n)
	r.observe.Pushed(n, err)
	if errors.Is(err, push.ErrTokenGone) {
		return r.forgetToken(ctx, m)
	}
	return err
}

// waiting returns the stored frame that a push is for; if that is gone, the oldest that
// waits, and nil if the mailbox is empty.
func (r *Relay) waiting(ctx context.Context, m *Member, seq int64) (*entry, error) {
	it, found, err := r.Find(ctx, laneKey(m.Lane, seq), "the frame of a push")
	if err != nil {
		return nil, err
	}
	if found {
		return entryFrom(it)
	}
	entries, err := r.readAll(ctx, m.Lane)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.conn == "" {
			return e, nil
		}
	}
	// The frames that the counter counts have expired.
	_, err = r.recount(ctx, m)
	return nil, err
}

// forgetToken deletes a push token that the provider refuses for good, unless the
// member has another one by now.
func (r *Relay) forgetToken(ctx context.Context, m *Member) error {
	_, err := r.table.Write(ctx, table.Op{
		Action: table.Update,
		Key:    memberKey(m.Group, m.Key),
		Conds:  []table.Cond{table.IfEqual(attrToken, table.String(m.Token))},
		Remove: []string{attrToken},
	})
	if err != nil && !errors.Is(err, table.ErrCondition) {
		return fmt.Errorf("failed to forget a push token: %w", err)
	}
	return nil
}
