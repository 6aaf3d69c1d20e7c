package aelos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// roster is the item that decides about a boat and its viewers.
type roster struct {
	Boat    *boat    `json:"b,omitempty"`
	Viewers []viewer `json:"v,omitempty"`
	// Told are the tags that the boat was told of, over any connection, and not yet told
	// to forget.
	Told []tag `json:"t,omitempty"`
	// Forgotten are the tags that an earlier connection may not have been told to
	// forget.
	Forgotten keptTags `json:"f,omitempty"`
	// Replaced are connections of the boat that a newer one has replaced and that are
	// still to be closed.
	Replaced []gateway.Conn `json:"x,omitempty"`
	Lease    *lease         `json:"l,omitempty"`

	group    string
	version  string // of the item as it was read; "" if there was none
	wasEmpty bool   // that item had no connections
}

// boat is the connection of the boat.
type boat struct {
	Conn  gateway.Conn `json:"c"`
	Proto int          `json:"p"`
	At    int64        `json:"a"` // when it connected, in milliseconds
	// Welcome and Listed say that the welcome was posted, and after it the list of
	// viewers.
	Welcome bool `json:"w,omitempty"`
	Listed  bool `json:"l,omitempty"`
}

// viewer is one connection of a viewer.
type viewer struct {
	Tag   tag          `json:"t"`
	Conn  gateway.Conn `json:"c"`
	Proto int          `json:"p"`
	Sub   string       `json:"u,omitempty"` // the user, see subOf
	Said  said         `json:"s,omitempty"`
	// NotBefore is the earliest time of a retry after a failed post, in milliseconds.
	NotBefore int64 `json:"n,omitempty"`
}

// said is what a viewer was told last about the boat.
type said int8

const (
	saidNothing said = iota // not even welcome
	saidOffline
	saidOnline
	// saidUncertain: it has its welcome, but which boat-status it got last is not known.
	saidUncertain
)

// markUncertain notes that it is not known what a viewer was told last. It does nothing,
// and reports false, for a viewer without its welcome.
func (v *viewer) markUncertain() bool {
	if v.Said == saidNothing {
		return false
	}
	v.Said = saidUncertain
	return true
}

// status is what viewers are to be told.
func (r *roster) status() said {
	if r.Boat != nil {
		return saidOnline
	}
	return saidOffline
}

// empty reports whether no connection is left.
func (r *roster) empty() bool { return r.Boat == nil && len(r.Viewers) == 0 && len(r.Replaced) == 0 }

func (r *roster) byConn(c gateway.Conn) *viewer {
	for i := range r.Viewers {
		if r.Viewers[i].Conn == c {
			return &r.Viewers[i]
		}
	}
	return nil
}

func (r *roster) byTag(t tag) *viewer {
	for i := range r.Viewers {
		if r.Viewers[i].Tag == t {
			return &r.Viewers[i]
		}
	}
	return nil
}

// remove takes a connection out, of the boat or a viewer, and reports whether it was
// there.
func (r *roster) remove(c gateway.Conn) bool {
	changed := false
	if r.Boat != nil && r.Boat.Conn == c {
		r.Boat, changed = nil, true
	}
	n := len(r.Viewers) + len(r.Replaced)
	r.Viewers = slices.DeleteFunc(r.Viewers, func(v viewer) bool { return v.Conn == c })
	r.Replaced = slices.DeleteFunc(r.Replaced, func(x gateway.Conn) bool { return x == c })
	return changed || len(r.Viewers)+len(r.Replaced) != n
}

// free reports whether no viewer has a tag and no boat may remember it.
func (r *roster) free(t tag) bool {
	return r.byTag(t) == nil && !slices.Contains(r.Told, t) && !r.Forgotten.has(t)
}

// viewersOf counts the viewers of one user.
func (r *roster) viewersOf(sub string) (n int64) {
	for i := range r.Viewers {
		if r.Viewers[i].Sub == sub {
			n++
		}
	}
	return n
}

func (r *roster) conns() []gateway.Conn {
	all := slices.Clone(r.Replaced)
	if r.Boat != nil {
		all = append(all, r.Boat.Conn)
	}
	for i := range r.Viewers {
		all = append(all, r.Viewers[i].Conn)
	}
	return all
}

func rosterKey(group string) table.Key { return table.Key{Partition: group, Sort: "roster"} }

// load reads the roster of a group, an empty one if there is none. The caller may change
// it.
func (d *Dialect) load(ctx context.Context, group string) (*roster, error) {
	it, found, err := d.core.Find(ctx, rosterKey(group), "a roster")
	if err != nil || !found {
		return &roster{group: group}, err
	}
	return decodeRoster(group, it)
}

// look is load for a caller that changes nothing, as with every payload frame. It decodes
// each version of a roster once.
func (d *Dialect) look(ctx context.Context, group string) (*roster, error) {
	it, found, err := d.core.Find(ctx, rosterKey(group), "a roster")
	if err != nil || !found {
		return &roster{group: group}, err
	}
	if r := d.cache.get(group); r != nil && r.version == it.Attrs["v"].Str() {
		return r, nil
	}
	r, err := decodeRoster(group, it)
	if err == nil {
		d.cache.put(r)
	}
	return r, err
}

func decodeRoster(group string, it table.Item) (*roster, error) {
	r := &roster{}
	if err := json.Unmarshal(it.Attrs["r"].Raw(), r); err != nil {
		return nil, fmt.Errorf("failed to decode a roster: %w", err)
	}
	r.group, r.version, r.wasEmpty = group, it.Attrs["v"].Str(), r.empty()
	return r, nil
}

// store writes a roster on condition that it has not been written since it was read;
// otherwise the error is table.ErrCondition.
func (d *Dialect) store(ctx context.Context, r *roster) error {
	op := table.Op{Action: table.Put, Key: rosterKey(r.group), Conds: []table.Cond{table.IfAbsent()}}
	if r.version != "" {
		op.Conds = []table.Cond{table.IfEqual("v", table.String(r.version))}
	}
	r.trim(d.core.Now())
	if r.empty() {
		d.cache.forget(r.group)
	}
	if r.empty() && len(r.Forgotten) == 0 {
		if r.version == "" {
			return nil
		}
		op.Action = table.Delete
		_, err := d.core.Table().Write(ctx, op)
		return err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("failed to encode a roster: %w", err)
	}
	version := d.core.NewID() // not a number: a roster may be deleted and created again
	op.Set = table.Attrs{"v": table.String(version), "r": table.Bytes(body)}
	ttl := d.core.ConnRecordTTL()
	switch {
	case r.empty():
		op.Expires = r.keptUntil()
	case ttl > 0:
		op.Expires = d.core.Now().Add(ttl)
	}
	if ttl > 0 && !r.empty() && (r.version == "" || r.wasEmpty) {
		// The front may fail to report the end of a connection: the sweeper looks.
		err = d.core.Table().Transact(ctx, []table.Op{op, relay.DueOp(d.core.Now().Add(sweepEvery), r.group)})
	} else {
		_, err = d.core.Table().Write(ctx, op)
	}
	if err == nil {
		r.version, r.wasEmpty = version, r.empty()
	}
	return err
}

// maxTries bounds how often a change is tried because another handler wrote first.
const maxTries = 64

// change applies f to the roster of a group and writes it, again if another handler wrote
// first. f reports whether it has changed anything. change returns the roster as it is
// then, and whether it was written.
func (d *Dialect) change(ctx context.Context, group string, f func(*roster) bool) (*roster, bool, error) {
	for range maxTries {
		r, err := d.load(ctx, group)
		if err != nil || !f(r) {
			return r, false, err
		}
		err = d.store(ctx, r)
		if err == nil {
			return r, true, nil
		}
		if !errors.Is(err, table.ErrCondition) {
			return nil, false, fmt.Errorf("failed to write a roster: %w", err)
		}
	}
	return nil, false, fmt.Errorf("failed to write a roster: %w", table.ErrBusy)
}

// leave takes a connection out of the roster, if it is there, and tells the others.
func (d *Dialect) leave(ctx context.Context, group string, c gateway.Conn) error {
	r, err := d.load(ctx, group)
	if err != nil {
		return err
	}
	if slices.Contains(r.conns(), c) {
		if err := d.settleLater(ctx, group, d.core.Now().Add(settleAfter)); err != nil {
			return err
		}
		if _, _, err := d.change(ctx, group, func(r *roster) bool { return r.remove(c) }); err != nil {
			return err
		}
	}
	return d.settleOthers(ctx, group)
}

// sweepEvery is how often the sweeper looks for lost connections.
const sweepEvery = 10 * time.Minute

// SweepGroup lets peers leave whose connection is lost and whose end was not reported.
func (d *Dialect) SweepGroup(ctx context.Context, group string) (time.Time, error) {
	if err := d.prune(ctx, group); err != nil {
		return time.Time{}, err
	}
	if err := d.settle(ctx, group); err != nil {
		return time.Time{}, err
	}
	// Write the roster again, so that it does not expire before its connections end.
	r, _, err := d.change(ctx, group, func(r *roster) bool { return !r.empty() })
	if err != nil || r.empty() {
		return time.Time{}, err
	}
	return d.core.Now().Add(sweepEvery), nil
}

// prune lets all peers leave whose connections are gone, as the front says.
func (d *Dialect) prune(ctx context.Context, group string) error {
	r, err := d.load(ctx, group)
	if err != nil {
		return err
	}
	for _, c := range r.conns() {
		if _, err := d.core.Front().Stat(ctx, c); !errors.Is(err, gateway.ErrGone) {
			continue // alive, or we cannot tell
		}
		if err := d.leave(ctx, group, c); err != nil {
			return err
		}
	}
	return nil
}
