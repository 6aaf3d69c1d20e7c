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

// Opened counts an upgrade that was accepted.
func (f Front) Opened() {
	f.m.accepted.Inc()
	f.m.sockets.Inc()
}

// Closed counts the end of an accepted connection.
func (f Front) Closed(code gateway.CloseCode) {
	f.m.sockets.Dec()
	f.m.closes.one(code).Inc()
}

// Refused counts an upgrade that the front or the relay refused with this HTTP status.
func (f Front) Refused(status int) { f.m.upgrades.one(status).Inc() }

// FrameIn counts a frame from a peer and its payload bytes.
func (f Front) FrameIn(bytes int) {
	f.m.framesIn.one(f.dialect).Inc()
	f.m.bytesIn.one(f.dialect).Add(float64(max(0, bytes)))
}

// FrameOut counts a frame to a peer and its payload bytes.
func (f Front) FrameOut(bytes int) {
	f.m.framesOut.one(f.dialect).Inc()
	f.m.bytesOut.one(f.dialect).Add(float64(max(0, bytes)))
}

// Confirmed notes how long after its ping a message was confirmed.
func (f Front) Confirmed(_ int, latency time.Duration) {
	f.m.confirmSeconds.Observe(latency.Seconds())
}

// SlowReader counts a connection that was closed because its peer read too slowly.
func (f Front) SlowReader() { f.m.slowReaders.Inc() }

// Failed counts an event ("connect", "frame", "confirmed", "disconnect") whose handler
// failed.
func (f Front) Failed(event string) { f.m.errors.one(event).Inc() }

// Panicked counts a panic in a handler.
func (f Front) Panicked() { f.m.panics.one("front").Inc() }

// Buffered notes a change of the bytes that wait to be written.
func (f Front) Buffered(delta int) { f.m.sendBuffers.Add(float64(delta)) }
