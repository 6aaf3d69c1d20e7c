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
//     to speak first puts its words into [ConnectResult].First. (A front that calls
//     its handler over a network asks again if the answer was lost: the same Connect,
//     which is to have the same answer. So it is with API Gateway and our own front
//     with the functions behind it.)
//   - Frame and Confirmed come after Connect, one after the other, never two at
//     once, Frames in the order in which the peer sent them.
//   - Disconnect comes last, at most once (on API Gateway: best effort), after
//     the last Frame has returned, whoever closed the connection. It does not
//     come for a connection that Connect refused.
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

// Conn names one connection. It is opaque: a front puts into it whatever it
// needs to find the connection again, including a callback address where there
// is more than one front. It is never reused. It may be logged.
type Conn string

// Errors of the actions.
var (
	// ErrGone says that the connection is no more (or is not yet: its Connect
	// has not returned). It is final for that connection.
	ErrGone = errors.New("connection is gone")
	// ErrTooLarge says that this front cannot carry a message of that size.
	ErrTooLarge = errors.New("message is too large for this front")
)

// Outcome says what a successful Post means.
type Outcome int

const (
	// Sent means that this front cannot tell when the peer receives a message:
	// this is as good as it gets, and no Confirmed will follow.
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
	// Droppable says that the message is worth little when it comes late: for a peer
	// that reads slowly it is dropped early and without a second try, and Post
	// answers [Dropped]. It never ends the connection of a slow reader.
	Droppable bool
}

// Stat is what a front knows about a connection.
type Stat struct {
	ConnectedAt  time.Time
	LastActiveAt time.Time
}

// Front is what a handler can do with a connection. All methods are safe for
// concurrent use and answer [ErrGone] for a connection that is no more.
type Front interface {
	// Post sends one message. After a Close of the same connection has
	// returned, Post answers ErrGone.
	Post(ctx context.Context, c Conn, m Message) (Outcome, error)

	// Close ends the connection. What was posted before is sent first, as far
	// as the peer still reads. Close does not wait for that, nor for a handler
	// of the connection that is running. A front without close codes ignores
	// code and reason.
	Close(ctx context.Context, c Conn, code CloseCode, reason string) error

	// Stat tells since when the connection is open and when it last spoke.
	Stat(ctx context.Context, c Conn) (Stat, error)

	// Gone reports true if the front knows, without asking anyone, that the
	// connection is no more and that no Disconnect of it is still to come:
	// Disconnect has returned, or the connection belonged to a process that has
	// died. False says nothing.
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
	// ID is the same whenever a front delivers the same frame again, and of no
	// other frame of the connection; "" from a front that never does.
	ID string
	// Data is valid until the handler returns, which may write into it meanwhile but
	// leaves it as it was.
	Data []byte
	Text bool
	// Oversize says that the message is longer than the read limit. Data is
	// then nil, Size is what the peer announced, and the front closes the
	// connection with [CloseTooLarge] when the handler has returned.
	Oversize bool
	Size     int64
	// At is when the message arrived.
	At time.Time
}

// FrameResult is what a handler tells the front after a frame.
type FrameResult struct {
	// ReadLimit, if not 0, is the new read limit of the connection in bytes.
	ReadLimit int64
}

// ConfirmedEvent says that the peer has answered a ping that was sent after
// the messages with these marks: it has them. Marks come in posting order and
// each at most once.
type ConfirmedEvent struct {
	Conn  Conn
	Marks []uint64
	At    time.Time
}

// DisconnectEvent says that the connection is no more.
type DisconnectEvent struct {
	Conn   Conn
	Code   CloseCode
	Reason string
	At     time.Time
}

// Handler is what a front calls. An error means that the event was not
// handled: a queueing front delivers it again, our own server closes the
// connection with [CloseInternal].
type Handler interface {
	Connect(ctx context.Context, e ConnectEvent) (ConnectResult, error)
	Frame(ctx context.Context, e FrameEvent) (FrameResult, error)
	Confirmed(ctx context.Context, e ConfirmedEvent) error
	Disconnect(ctx context.Context, e DisconnectEvent) error
}
