// Package gateway is the contract between a WebSocket front and the handlers
// behind it. It is modelled on API Gateway WebSocket, because that is the
// front we do not control; our own server (package gateway/server) keeps the
// same contract and adds what API Gateway cannot do: it knows when the peer
// has really received a frame.
//
// # Events
//
// A front calls a [Handler]. For one connection:
//
//   - Connect comes first and exactly once. Until it has returned, nothing can
//     be posted to the connection: Post answers [ErrGone]. A handler that wants
//     to send the first message puts it into [ConnectResult].First. (A front that
//     calls its handler over a network repeats a Connect whose answer was lost, and
//     the handler must give the same answer. API Gateway does so, and our own front
//     with the functions behind it.)
//   - Frame and Confirmed come after Connect, one after the other, never two at
//     once, Frames in the order in which the peer sent them.
//   - Disconnect comes last, at most once (on API Gateway: best effort), after
//     the last Frame has returned, whether the relay or the peer closed the
//     connection. It does not come for a connection that Connect refused.
//
// Handlers of different connections run in parallel.
//
// # Actions
//
// A handler acts on any connection through [Front]. Frames posted to one
// connection by one goroutine arrive in that order. Post never waits for the
// peer: a front that cannot take more for a slow reader closes that reader and
// answers ErrGone.
package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Conn identifies one connection. It is opaque: a front puts into it what it needs to find
// the connection, including a callback address if there are several fronts. It is never
// reused and may be logged.
type Conn string

// Errors of the actions.
var (
	// ErrGone says that the connection is closed (or not open yet: its Connect has
	// not returned). A closed connection stays closed.
	ErrGone = errors.New("connection is gone")
	// ErrTooLarge says that this front cannot carry a message of that size.
	ErrTooLarge = errors.New("message is too large for this front")
)

// Outcome says what a successful Post means.
type Outcome int

const (
	// Sent means that this front cannot tell when the peer receives a message: no
	// Confirmed will follow.
	Sent Outcome = iota + 1
	// Pending means that the message is on its way and, if it carried a Mark,
	// that Confirmed follows when the peer has answered a ping sent after it.
	Pending
	// Dropped means that a Droppable message was not taken, because the peer reads
	// too slowly. The connection is as before.
	Dropped
)

// Message is one WebSocket message to the peer.
type Message struct {
	// Data is copied by Post; the caller may reuse it.
	Data []byte
	// Text selects a text message; otherwise it is binary. A front that has no
	// binary messages carries them as base64 text by itself.
	Text bool
	// Mark, if not 0, asks to be confirmed (see [ConfirmedEvent]).
	Mark uint64
	// Droppable says that the message is of little use when it comes late. For a peer
	// that reads slowly the front drops it early, without a retry, and Post answers
	// [Dropped]. It never closes the connection of a slow reader.
	Droppable bool
}

// Stat is what a front knows about a connection.
type Stat struct {
	ConnectedAt  time.Time
	LastActiveAt time.Time
}

// Front is what a handler can do with a connection. All methods are safe for
// concurrent use and answer [ErrGone] for a closed connection.
type Front interface {
	// Post sends one message. After a Close of the same connection has
	// returned, Post answers ErrGone.
	Post(ctx context.Context, c Conn, m Message) (Outcome, error)

	// Close ends the connection. The front sends what was posted before, as far as
	// the peer still reads. Close waits neither for that nor for a running handler of
	// the connection. A front without close codes ignores code and reason.
	Close(ctx context.Context, c Conn, code CloseCode, reason string) error

	// Stat tells since when the connection is open and when it last spoke.
	Stat(ctx context.Context, c Conn) (Stat, error)

	// Gone reports true if the front knows, without a network call, that the
	// connection is closed and that no Disconnect of it is still to come: Disconnect
	// has returned, or the connection belonged to a process that died. False means
	// that the front does not know.
	Gone(c Conn) bool
}

// ConnectEvent is an upgrade request.
type ConnectEvent struct {
	Conn Conn
	// RemoteIP is the address of the client, not of a proxy in between.
	RemoteIP netip.Addr
	Path     string
	Query    url.Values
	Header   http.Header
	At       time.Time
}

// ConnectResult is the answer to an upgrade request.
type ConnectResult struct {
	// Status accepts the connection with 101 (or 0 or any 2xx), otherwise
	// refuses it with this HTTP status.
	Status int
	// Header and Body go with a refusal, where the front can carry them.
	Header http.Header
	Body   []byte
	// ReadLimit is the size of the largest message in bytes that the front
	// reads from the peer; 0 leaves it to the front.
	ReadLimit int64
	// First are messages to send as soon as the connection can be posted to,
	// before any other. (On API Gateway, which can post only after Connect has
	// returned, the adapter makes a job of them.)
	First []Message
}

// Accepted reports whether the connection is to be opened.
func (r ConnectResult) Accepted() bool {
	return r.Status == 0 || r.Status == http.StatusSwitchingProtocols || r.Status/100 == 2
}

// FrameEvent is one message from the peer.
type FrameEvent struct {
	Conn Conn
	// ID is the same each time a front delivers the same frame, and different for
	// every other frame of the connection. It is "" from a front that never repeats one.
	ID string
	// Data is valid until the handler returns. The handler may write into it but must
	// restore it.
	Data []byte
	Text bool
	// Oversize says that the message is longer than the read limit. Data is then
	// nil, Size is the length that the peer announced, and the front closes the
	// connection with [CloseTooLarge] after the handler has returned.
	Oversize bool
	Size     int64
	// At is when the message arrived.
	At time.Time
}

// FrameResult is the handler's answer to a frame.
type FrameResult struct {
	// ReadLimit, if not 0, is the new read limit of the connection in bytes.
	ReadLimit int64
}

// ConfirmedEvent says that the peer has answered a ping that was sent after the
// messages with these marks, so it has received them. Marks come in posting order,
// each at most once.
type ConfirmedEvent struct {
	Conn  Conn
	Marks []uint64
	At    time.Time
}

// DisconnectEvent says that the connection has ended.
type DisconnectEvent struct {
	Conn   Conn
	Code   CloseCode
	Reason string
	At     time.Time
}

// Handler handles the events of a front. An error means that the event was not
// handled: a front with a queue delivers it again, our own server closes the
// connection with [CloseInternal].
type Handler interface {
	Connect(ctx context.Context, e ConnectEvent) (ConnectResult, error)
	Frame(ctx context.Context, e FrameEvent) (FrameResult, error)
	Confirmed(ctx context.Context, e ConfirmedEvent) error
	Disconnect(ctx context.Context, e DisconnectEvent) error
}
