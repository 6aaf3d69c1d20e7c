package metrics

import (
	"time"

	"blindpost/shared/gateway"
)

// Front is the observer of our own WebSocket server.
type Front struct {
	m       *Metrics
	dialect string
}

// Front returns the observer for a server. A server does not know the dialect of a frame:
// its frames are counted under dialect, or under "other" if that is "" because the server
// serves more than one.
func (m *Metrics) Front(dialect string) Front { return Front{m, dialect} }

// Opened counts a connection.
func (f Front) Opened() { f.m.SocketOpened() }

// Closed counts the end of a connection.
func (f Front) Closed(code gateway.CloseCode) { f.m.SocketClosed(code) }

// Refused counts an upgrade that was refused.
func (f Front) Refused(status int) { f.m.UpgradeRefused(status) }

// FrameIn counts a frame from a peer.
func (f Front) FrameIn(bytes int) { f.m.FrameReceived(f.dialect, bytes) }

// FrameOut counts a frame to a peer.
func (f Front) FrameOut(bytes int) { f.m.FrameSent(f.dialect, bytes) }

// Confirmed notes how long a confirmation took.
func (f Front) Confirmed(_ int, latency time.Duration) { f.m.DeliveryConfirmed(latency) }

// SlowReader counts a peer that read too slowly.
func (f Front) SlowReader() { f.m.SlowReader() }

// Failed counts an event whose handler failed.
func (f Front) Failed(event string) { f.m.HandlerError(event) }

// Panicked counts a panic in a handler.
func (f Front) Panicked() { f.m.HandlerPanic("front") }

// Buffered notes a change of the bytes that wait to be written.
func (f Front) Buffered(delta int) { f.m.SendBuffered(delta) }
