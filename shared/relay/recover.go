package relay

import (
	"context"
	"strings"

	"blindpost/shared/table"
)

// GroupPrefix is how the partitions of all groups begin. A relay that keeps its
// jobs in memory goes through them at start, see Recover.
const GroupPrefix = "g/"

// Recovered is what Recover has found.
type Recovered struct {
	Stored int // frames that wait in all mailboxes
	Woken  int // members for which a push was asked
}

// Recover visits an item of a group when a process starts. Jobs that were in the
// memory of the process before are gone, pushes among them: if that one did not
// end in good order, each member that has something waiting and is not connected
// is woken once more. Too many pushes are better than a phone that sleeps on.
func (r *Relay) Recover(ctx context.Context, it table.Item, unclean bool, sum *Recovered) {
	group, ok := strings.CutPrefix(it.Key.Partition, GroupPrefix)
	if !ok || !strings.HasPrefix(it.Key.Sort, memberSort) {
		return
	}
	m := memberFrom(group, it)
	sum.Stored += int(m.stored)
	// A pointer that is still there says that its connection did not end in good
	// order either, and with it went the push for what it had not confirmed.
	if m.stored > 0 && m.Token != "" && (unclean || m.Conn != "") {
		r.wake(ctx, group, m.Key, m.tail)
		sum.Woken++
	}
}
