package standalone

import (
	"context"

	"blindpost/shared/table/bolt"
	"blindpost/shared/table/mem"
)

// Database is the database file. Tests read it, and close it to end a relay like kill -9.
func (n *Node) Database() *bolt.Table { return n.bolt }

// Memory is the table in memory.
func (n *Node) Memory() *mem.Table { return n.mem }

// Sweep does the sweep of every minute at once.
func (n *Node) Sweep(ctx context.Context) error { return n.sweepOnce(ctx) }

// StopSweep ends the sweeps. Tests use it, because expiry must not depend on sweeps.
func (n *Node) StopSweep() {
	n.stop()
	<-n.swept
}
