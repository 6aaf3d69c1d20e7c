package relay

import (
	"context"
	"fmt"
	"strings"

	"blindpost/shared/table"
)

// GroupPrefix is the prefix of the partitions of all groups. A relay that keeps its
// jobs in memory reads them all at start, see Recovery.
const GroupPrefix = "g/"

// Recovery does what a process has left undone. The next process on the same storage
// runs it before it accepts connections.
type Recovery struct {
	Stored int // frames that wait in all mailboxes
	Woken  int // members for which a push was asked
	Lost   int // members whose connection has died with the process

	relay   *Relay
	unclean bool
	ops     []table.Op
}

// NewRecovery begins a recovery. unclean says that the process before has crashed.
func (r *Relay) NewRecovery(unclean bool) *Recovery {
	return &Recovery{relay: r, unclean: unclean}
}

// Visit looks at an item of a group. The caller gives it all items, then calls Finish.
//
// All connections are lost, so every member that has one leaves. Jobs in the memory of
// the process are lost too, pushes among them: after a crash each member with a stored
// frame gets a push again. A push too many is better than a phone that sleeps on.
func (y *Recovery) Visit(ctx context.Context, it table.Item) error {
	group, ok := strings.CutPrefix(it.Key.Partition, GroupPrefix)
	if ok && strings.HasPrefix(it.Key.Sort, GroupItem(group, removalItem).Sort) {
		return y.countPurge(ctx, it)
	}
	if !ok || !strings.HasPrefix(it.Key.Sort, memberSort) {
		return nil
	}
	m := memberFrom(group, it)
	y.Stored += int(m.stored)
	if m.stored > 0 && m.Token != "" && (y.unclean || m.Conn != "") {
		y.relay.wake(ctx, group, m.Key, m.tail)
		y.Woken++
	}
	if d, ok := y.relay.dialectOfGroup(group).(Keeper); ok && (y.unclean || m.Conn != "") {
		woken, err := d.Recovered(ctx, m)
		if err != nil {
			return err
		}
		if woken {
			y.Woken++
		}
	}
	if m.Conn == "" {
		return nil
	}
	y.Lost++
	y.ops = append(y.ops, m.leaveOp(y.relay.now()))
	if len(y.ops) < table.MaxTransaction {
		return nil
	}
	return y.Finish(ctx)
}

// countPurge counts the frames that a removal has still to purge: they are taken off the
// number of stored frames then.
func (y *Recovery) countPurge(ctx context.Context, removal table.Item) error {
	entries, err := y.relay.readAll(ctx, removal.Attrs[attrLane].Str())
	for _, e := range entries {
		if e.conn == "" {
			y.Stored++
		}
	}
	return err
}

// Finish writes what Visit has found and not written yet.
func (y *Recovery) Finish(ctx context.Context) error {
	if len(y.ops) == 0 {
		return nil
	}
	if err := y.relay.table.Transact(ctx, y.ops); err != nil {
		return fmt.Errorf("failed to take members offline: %w", err)
	}
	y.ops = nil
	return nil
}
