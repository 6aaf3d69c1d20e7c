package engine

import (
	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// World is a dialect, its peers and its model. The engine calls it from one goroutine
// at a time.
type World interface {
	// Dialect makes the dialect on a core.
	Dialect(core *relay.Relay, pusher push.Sender) relay.Dialect
	// Volatile are the prefixes of partitions that a single process keeps in memory.
	Volatile() []string
	// Groups are all groups of the core there may be.
	Groups() []string

	// Begin makes the peers; it may use [Engine.Rest].
	Begin()
	// Acts offers what peers may do now, of their own accord.
	Acts(add func(weight int, do func()))
	// Finish is called when the faults have stopped: it lets the world come to rest
	// and judges what is left.
	Finish()

	// Connected is called when an upgrade was answered: accepted, refused, or not
	// answered at all (status 0 and no body).
	Connected(k *Socket, accepted bool, r gateway.ConnectResult)
	// Received is a frame that the peer reads.
	Received(k *Socket, f Frame)
	// Ended says that the peer's side of a connection has come to its end.
	Ended(k *Socket)

	// Posted is called for each post, taken or not, as it takes effect. k is nil for a
	// connection that was never dialed.
	Posted(t *Task, k *Socket, m gateway.Message, taken bool)
	// Wrote is called when operations have taken effect.
	Wrote(t *Task, ops []table.Op)
	// Pushed is called for each push.
	Pushed(t *Task, n push.Notification)
	// TaskEnded is called for each handler that has ended, or was stopped.
	TaskEnded(t *Task)
	// Crashed is called when the single process has died.
	Crashed()
	// Text is shown all that is logged and all errors.
	Text(where, text string)
	// Describe names a frame in a trace.
	Describe(data []byte, text bool) string
}

// Frame is a message to a peer.
type Frame struct {
	Data []byte
	Text bool
	mark uint64
	// Step is when it was posted.
	Step int
}
