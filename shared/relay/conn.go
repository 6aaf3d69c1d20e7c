package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// ConnPartition is the prefix of the partitions of connection records. They
// may live in a table that forgets them on restart, when the connections are
// gone too.
const ConnPartition = "c/"

// Conn is the record of one connection. A dialect gets it with every event and
// saves it with [Relay.SaveConn] when it has changed something. The events of
// one connection come one after another, so no other handler writes it.
type Conn struct {
	ID      gateway.Conn
	Dialect string
	At      time.Time // when it connected

	// Group, Member, Epoch and Role are empty until Join.
	Group  string
	Member string
	Epoch  int64
	Role   string

	// Admitted says that admission is complete: from now on the core holds the
	// member during a frame. Until then the dialect does, since only the dialect
	// learns which member it is. The dialect sets it.
	Admitted bool

	// Private belongs to the dialect (for example a challenge).
	Private []byte

	messages rateWindow
	control  rateWindow
	// counted is the frame that the windows have counted last, frame the one
	// that is being handled; see gateway.FrameEvent.ID.
	counted string
	frame   string
	// done are the last frames that were handled to the end, the newest at the end; see Done.
	done []string
	// again says that the Connect that is being handled was handled before.
	again bool

	// after is the connection before, as long as frames of it may still be under
	// way; see awaitTurn.
	after gateway.Conn
	// memberLeft says that the member has left, and that all that follows is done:
	// only the record remains.
	memberLeft bool

	// lane is the mailbox that the member had when this connection joined.
	lane string
	// posted is the last number of the lane that the pump has posted, pausedAt
	// the number whose confirmation it waits for (0: it does not wait).
	posted   int64
	pausedAt int64
}

// Joined reports whether a member stands behind the connection.
func (c *Conn) Joined() bool { return c.Group != "" }

// FrameID is the id of the frame that is being handled, unique over all
// connections, and the same when the frame is delivered again; "" where the front
// never delivers a frame again.
func (c *Conn) FrameID() string {
	if c.frame == "" {
		return ""
	}
	return string(c.ID) + "/" + c.frame
}

// Again says, during Connect, that an earlier Connect of this connection has saved
// the record, and that its answer was lost. Then the dialect answers as it did before.
func (c *Conn) Again() bool { return c.again }

// maxDone is how many frames a queue hands over, and takes back, at a time.
const maxDone = 10

// Done notes that the frame that is being handled must not be handled a second time if
// it is delivered again; see [Conn.WasDone]. A frame whose second handling changes
// nothing, nor undoes what a later frame has changed, does not need it. The caller saves
// c, or calls SaveDone instead.
func (c *Conn) Done() {
	if c.frame == "" || c.WasDone() {
		return
	}
	c.done = append(c.done, c.frame)
	c.done = c.done[max(0, len(c.done)-maxDone):]
}

// WasDone reports whether the frame that is being handled was Done before.
func (c *Conn) WasDone() bool { return c.frame != "" && slices.Contains(c.done, c.frame) }

func (c *Conn) admitted() bool { return c.Joined() && c.Admitted }

// rateWindow counts events since its start. See limits.go.
type rateWindow struct {
	start time.Time
	n     int64
}

func connKey(id gateway.Conn) table.Key {
	return table.Key{Partition: ConnPartition + string(id), Sort: "c"}
}

func (c *Conn) attrs() table.Attrs {
	a := table.Attrs{
		recDialect: table.String(c.Dialect),
		recAt:      table.Number(c.At.UnixMilli()),
	}
	if c.Group != "" {
		a[recGroup] = table.String(c.Group)
		a[recMember] = table.String(c.Member)
		a[recEpoch] = table.Number(c.Epoch)
		a[recRole] = table.String(c.Role)
		a[recLane] = table.String(c.lane)
	}
	if c.after != "" {
		a[recAfter] = table.String(string(c.after))
	}
	if c.memberLeft {
		a[recLeft] = table.Number(1)
	}
	if c.Private != nil {
		a[recPrivate] = table.Bytes(c.Private)
	}
	if c.Admitted {
		a[recAdmitted] = table.Number(1)
	}
	c.messages.put(a, recMessagesStart, recMessages)
	c.control.put(a, recControlStart, recControl)
	if c.counted != "" {
		a[recCounted] = table.String(c.counted)
	}
	if len(c.done) > 0 {
		a[recDone] = c.doneAttr()
	}
	if c.posted != 0 {
		a[recPosted] = table.Number(c.posted)
	}
	if c.pausedAt != 0 {
		a[recPausedAt] = table.Number(c.pausedAt)
	}
	return a
}

func connFrom(id gateway.Conn, it table.Item) *Conn {
	a := it.Attrs
	c := &Conn{
		ID:         id,
		Dialect:    a[recDialect].Str(),
		At:         time.UnixMilli(a[recAt].Num()),
		Group:      a[recGroup].Str(),
		Member:     a[recMember].Str(),
		Epoch:      a[recEpoch].Num(),
		Role:       a[recRole].Str(),
		Admitted:   a[recAdmitted].Num() == 1,
		Private:    a[recPrivate].Raw(),
		messages:   windowFrom(a, recMessagesStart, recMessages),
		control:    windowFrom(a, recControlStart, recControl),
		counted:    a[recCounted].Str(),
		after:      gateway.Conn(a[recAfter].Str()),
		memberLeft: a[recLeft].Num() == 1,
		lane:       a[recLane].Str(),
		posted:     a[recPosted].Num(),
		pausedAt:   a[recPausedAt].Num(),
	}
	if v := a[recDone].Str(); v != "" {
		c.done = strings.Split(v, "\n")
	}
	return c
}

// LoadConn reads the record of a connection, nil if there is none.
func (r *Relay) LoadConn(ctx context.Context, id gateway.Conn) (*Conn, error) {
	it, ok, err := r.Find(ctx, connKey(id), "the connection record")
	if err != nil || !ok {
		return nil, err
	}
	c := connFrom(id, it)
	if r.distributed {
		r.unsaved.complete(c)
	}
	return c, nil
}

// SaveConn writes the record of a connection.
func (r *Relay) SaveConn(ctx context.Context, c *Conn, conds ...table.Cond) error {
	op := table.Op{Action: table.Put, Key: connKey(c.ID), Conds: conds, Set: c.attrs()}
	if ttl := r.connRecordTTL; ttl > 0 {
		op.Expires = c.At.Add(ttl)
	}
	if _, err := r.table.Write(ctx, op); err != nil {
		return fmt.Errorf("failed to save the connection record: %w", err)
	}
	if r.distributed {
		r.unsaved.forget(c.ID)
	}
	return nil
}

// SaveDone is Done, and saves nothing else. Where the front never delivers a frame
// again, it does nothing.
func (r *Relay) SaveDone(ctx context.Context, c *Conn) error {
	if c.frame == "" {
		return nil
	}
	c.Done()
	return r.changeConn(ctx, c.ID, table.Op{Set: table.Attrs{recDone: c.doneAttr()}})
}

func (c *Conn) doneAttr() table.Value { return table.String(strings.Join(c.done, "\n")) }

// changeConn changes a part of a record, if the record still exists. It neither brings
// a deleted record back nor undoes what another handler has written.
func (r *Relay) changeConn(ctx context.Context, id gateway.Conn, op table.Op) error {
	op.Action, op.Key, op.Conds = table.Update, connKey(id), []table.Cond{table.IfExists()}
	if _, err := r.table.Write(ctx, op); err != nil && !errors.Is(err, table.ErrCondition) {
		return fmt.Errorf("failed to change the connection record: %w", err)
	}
	return nil
}

func (r *Relay) deleteConn(ctx context.Context, id gateway.Conn) error {
	if _, err := r.table.Write(ctx, table.Op{Action: table.Delete, Key: connKey(id)}); err != nil {
		return fmt.Errorf("failed to delete the connection record: %w", err)
	}
	r.unsaved.forget(id)
	return nil
}
