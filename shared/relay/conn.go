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
// one connection come one after another, so nobody else writes it.
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
	// member during a frame. Until then the dialect does, since only it learns
	// who that is. Set by the dialect.
	Admitted bool

	// Private belongs to the dialect (for example a challenge).
	Private []byte

	messages rateWindow
	control  rateWindow
	// counted is the frame that the windows have counted last, frame the one
	// that is being handled; see gateway.FrameEvent.ID.
	counted string
	frame   string
	// done are the frames that were handled to the end, see Done; the newest last.
	done []string
	// again says that the Connect that is being handled was handled before.
	again bool

	// after is the connection that this one has replaced, as long as frames of it
	// may still be under way; see awaitTurn.
	after gateway.Conn
	// left says that the member has been taken offline already, with all that
	// belongs to it, and only the record is left.
	left bool

	// lane is the mailbox that the member had when this connection joined.
	lane string
	// posted is the last number of the lane that the pump has posted, pausedAt
	// the number whose confirmation it waits for (0: it does not wait).
	posted   int64
	pausedAt int64
}

// Joined reports whether a member stands behind the connection.
func (c *Conn) Joined() bool { return c.Group != "" }

// FrameID tells the frame that is being handled from all others of all
// connections, and is the same if it is delivered again; "" from a front that
// never does.
func (c *Conn) FrameID() string {
	if c.frame == "" {
		return ""
	}
	return string(c.ID) + "/" + c.frame
}

// Again says, during Connect, that an earlier one of this connection has saved the
// record, and that its answer was lost. Then the dialect answers as it did before.
func (c *Conn) Again() bool { return c.again }

// maxDone is how many frames a queue hands over, and takes back, at a time.
const maxDone = 10

// Done notes that the frame that is being handled must not be handled again, should it
// be delivered again; see [Conn.WasDone]. A frame that changes nothing the second time,
// and nothing that a later one has changed, does not need it. The caller saves c, or
// calls SaveDone instead.
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

// Attributes of a record that are also written by themselves.
const (
	connAfter    = "af"
	connDone     = "dn"
	connLeft     = "lf"
	connPosted   = "lp"
	connPausedAt = "lw"
)

func connKey(id gateway.Conn) table.Key {
	return table.Key{Partition: ConnPartition + string(id), Sort: "c"}
}

func (c *Conn) attrs() table.Attrs {
	a := table.Attrs{
		"d":  table.String(c.Dialect),
		"at": table.Number(c.At.UnixMilli()),
	}
	if c.Group != "" {
		a["g"] = table.String(c.Group)
		a["m"] = table.String(c.Member)
		a["e"] = table.Number(c.Epoch)
		a["r"] = table.String(c.Role)
		a["ln"] = table.String(c.lane)
	}
	if c.after != "" {
		a[connAfter] = table.String(string(c.after))
	}
	if c.left {
		a[connLeft] = table.Number(1)
	}
	if c.Private != nil {
		a["p"] = table.Bytes(c.Private)
	}
	if c.Admitted {
		a["ok"] = table.Number(1)
	}
	c.messages.put(a, "mw", "mn")
	c.control.put(a, "cw", "cn")
	if c.counted != "" {
		a["id"] = table.String(c.counted)
	}
	if len(c.done) > 0 {
		a[connDone] = c.doneAttr()
	}
	if c.posted != 0 {
		a[connPosted] = table.Number(c.posted)
	}
	if c.pausedAt != 0 {
		a[connPausedAt] = table.Number(c.pausedAt)
	}
	return a
}

func connFrom(id gateway.Conn, it table.Item) *Conn {
	a := it.Attrs
	c := &Conn{
		ID:       id,
		Dialect:  a["d"].Str(),
		At:       time.UnixMilli(a["at"].Num()),
		Group:    a["g"].Str(),
		Member:   a["m"].Str(),
		Epoch:    a["e"].Num(),
		Role:     a["r"].Str(),
		Admitted: a["ok"].Num() == 1,
		Private:  a["p"].Raw(),
		messages: windowFrom(a, "mw", "mn"),
		control:  windowFrom(a, "cw", "cn"),
		counted:  a["id"].Str(),
		after:    gateway.Conn(a[connAfter].Str()),
		left:     a[connLeft].Num() == 1,
		lane:     a["ln"].Str(),
		posted:   a[connPosted].Num(),
		pausedAt: a[connPausedAt].Num(),
	}
	if v := a[connDone].Str(); v != "" {
		c.done = strings.Split(v, "\n")
	}
	return c
}

// LoadConn reads the record of a connection, nil if there is none.
func (r *Relay) LoadConn(ctx context.Context, id gateway.Conn) (*Conn, error) {
	it, err := r.table.Get(ctx, connKey(id))
	if errors.Is(err, table.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to load the connection record: %w", err)
	}
	c := connFrom(id, it)
	if r.distributed {
		r.unsaved.complete(c)
	}
	return c, nil
}

// SaveConn writes the record of a connection.
func (r *Relay) SaveConn(ctx context.Context, c *Conn) error { return r.saveConn(ctx, c) }

func (r *Relay) saveConn(ctx context.Context, c *Conn, conds ...table.Cond) error {
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

// SaveDone is Done, and saves that alone. Where no frame comes again it does nothing.
func (r *Relay) SaveDone(ctx context.Context, c *Conn) error {
	if c.frame == "" {
		return nil
	}
	c.Done()
	return r.changeConn(ctx, c.ID, table.Op{Set: table.Attrs{connDone: c.doneAttr()}})
}

func (c *Conn) doneAttr() table.Value { return table.String(strings.Join(c.done, "\n")) }

// changeConn changes a part of a record, if it is still there: for what must neither
// bring it back nor undo what somebody else has written.
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
