package relay

import (
	"context"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
)

// Frame is one encoded message of a dialect.
type Frame struct {
	Data []byte
	Text bool
}

func (f Frame) message(mark uint64) gateway.Message {
	return gateway.Message{Data: f.Data, Text: f.Text, Mark: mark}
}

// Dialect is one wire protocol on top of the core. Its methods are called for
// the connections it has accepted.
type Dialect interface {
	// Name is short and stable; it prefixes groups ("name/...") and job kinds
	// ("name.kind"), and is a label of metrics.
	Name() string

	// Serves reports whether this dialect answers at a path.
	Serves(path string) bool

	// Connect decides about an upgrade. The core saves c afterwards if the
	// connection is accepted.
	Connect(ctx context.Context, c *Conn, e gateway.ConnectEvent) (gateway.ConnectResult, error)

	// Frame handles one frame. Once c.Admitted is set, the core holds the member
	// meanwhile.
	Frame(ctx context.Context, c *Conn, e gateway.FrameEvent) (gateway.FrameResult, error)

	// Disconnected is called when a connection ends, after its member has left. It
	// may be called again.
	Disconnected(ctx context.Context, c *Conn) error

	// Job handles a job whose kind has the prefix of this dialect.
	Job(ctx context.Context, j queue.Job) error

	// Presence makes the frame that tells a member that another one went
	// online or offline; false if this dialect has none.
	Presence(member string, online bool) (Frame, bool)

	// Undelivered makes the frame that tells a sender that a live frame did not
	// reach a member; false if this dialect has none.
	Undelivered(member string) (Frame, bool)

	// Wake makes the push for a stored frame that waits for m; false for none.
	Wake(m *Member, f Frame) (push.Notification, bool)

	// GroupTTL is how long a group lives without any connection; 0 for ever.
	GroupTTL() time.Duration
}

// Gatekeeper is a Dialect with its own answers to upgrades that the core refuses before
// it calls Connect.
type Gatekeeper interface {
	// Precheck reports false, with the answer, for an upgrade that is wrong by itself. The
	// core calls it before it counts, reads or writes anything.
	Precheck(e gateway.ConnectEvent) (gateway.ConnectResult, bool)
	// RateLimited is the answer to an address that opens too many connections.
	RateLimited(after time.Duration) gateway.ConnectResult
}

// DialectMark is set in the marks of messages that a dialect posts itself. Their
// confirmations go to the dialect, if it is a Confirmer, and not to the mailbox.
const DialectMark = 1 << 60

// Confirmer is a Dialect that asks for confirmations of its own, see [DialectMark].
type Confirmer interface {
	// Confirmed is called for a connection with a member behind it, which is held.
	Confirmed(ctx context.Context, c *Conn, marks []uint64) error
}

// Replacer is a Dialect that says with which code its replaced connections are closed.
// The others use [gateway.CloseReplaced].
type Replacer interface {
	ReplacedCode() gateway.CloseCode
}

// Keeper is a Dialect that stores what waits for its members itself, not in the mailbox.
type Keeper interface {
	// MemberLeft is called when a member, which is held, has left: frames that were posted
	// to it may not have arrived, and frames that came since wait. It may be called again.
	MemberLeft(ctx context.Context, m *Member) error
	// Recovered is called for a member whose connection or jobs may be lost, see
	// [Recovery], and reports whether it has asked for a push. It only sends jobs: the
	// caller is in the middle of reading the table.
	Recovered(ctx context.Context, m *Member) (woken bool, err error)
}

// Cleaner is a Dialect that keeps data of a group outside of its partition.
type Cleaner interface {
	// CleanGroup deletes what belongs to one generation of a group that is gone. It may
	// be called again.
	CleanGroup(ctx context.Context, group, generation string) error
}

// GroupSweeper is a Dialect whose groups have no members in the core: the sweeper
// calls it for a group that is due (see [DueOp]).
type GroupSweeper interface {
	// SweepGroup looks at a group and says when to look again; the zero time says
	// that there is nothing left to look at.
	SweepGroup(ctx context.Context, group string) (time.Time, error)
}
