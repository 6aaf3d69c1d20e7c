package standalone

import (
	"context"

	"blindpost/shared/table/bolt"
	"blindpost/shared/table/mem"
)

// Database is the file. Tests look into it, and close it to end a relay as kill -9 does.
func (n *Node) Database() *bolt.Table { return n.bolt }

// Memory is what ends with the process.
func (n *Node) Memory() *mem.Table { return n.mem }

// Sweep does at once what is else done every minute.
func (n *Node) Sweep(ctx context.Context) error { return n.sweepOnce(ctx) }

// StopSweep ends the sweeps. What is decided on read must not need them.
func (n *Node) StopSweep() {
	n.stop()
	<-n.swept
}
