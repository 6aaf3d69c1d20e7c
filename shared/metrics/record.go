package metrics

import (
	"time"

	"blindpost/shared/gateway"
)

// SocketOpened counts an upgrade that was accepted.
func (m *Metrics) SocketOpened() {
	m.accepted.Inc()
	m.sockets.Inc()
}

// SocketClosed counts the end of an accepted connection.
func (m *Metrics) SocketClosed(code gateway.CloseCode) {
	m.sockets.Dec()
	m.closes.one(code).Inc()
}

// UpgradeRefused counts an upgrade that the front or the relay refused with this HTTP
// status.
func (m *Metrics) UpgradeRefused(status int) { m.upgrades.one(status).Inc() }

// SlowReader counts a connection that was closed because its peer read too
// slowly.
func (m *Metrics) SlowReader() { m.slowReaders.Inc() }

// SendBuffered notes a change of the bytes that wait to be written.
func (m *Metrics) SendBuffered(delta int) { m.sendBuffers.Add(float64(delta)) }

// ConnectRefused counts an upgrade that the relay refused, by its reason.
func (m *Metrics) ConnectRefused(dialect, reason string) { m.refused.two(dialect, reason).Inc() }

// Authenticated counts an attempt to authenticate; result is "ok" or the error
// code.
func (m *Metrics) Authenticated(dialect, role, result string) {
	m.authenticated.three(dialect, role, result).Inc()
}

// ConnectionJoined counts a connection that now belongs to a member.
func (m *Metrics) ConnectionJoined(dialect, role string) { m.connections.two(dialect, role).Inc() }

// ConnectionLeft reverses a ConnectionJoined.
func (m *Metrics) ConnectionLeft(dialect, role string) { m.connections.two(dialect, role).Dec() }

// FrameReceived counts a frame from a peer and its payload bytes.
func (m *Metrics) FrameReceived(dialect string, bytes int) {
	m.framesIn.one(dialect).Inc()
	m.bytesIn.one(dialect).Add(float64(max(0, bytes)))
}

// FrameSent counts a frame to a peer and its payload bytes.
func (m *Metrics) FrameSent(dialect string, bytes int) {
	m.framesOut.one(dialect).Inc()
	m.bytesOut.one(dialect).Add(float64(max(0, bytes)))
}

// FrameHandled notes how long the handling of a frame took.
func (m *Metrics) FrameHandled(dialect, kind string, took time.Duration) {
	m.frameSeconds.two(dialect, kind).Observe(took.Seconds())
}

// MessageSent counts a message by its outcome.
func (m *Metrics) MessageSent(class, outcome string) { m.messages.two(class, outcome).Inc() }

// MessagesDropped counts messages that a rule dropped.
func (m *Metrics) MessagesDropped(class, reason string, n int) {
	m.dropped.two(class, reason).Add(float64(max(0, n)))
}

// MessagesConfirmed counts stored messages that their recipient has confirmed.
func (m *Metrics) MessagesConfirmed(n int) { m.confirmed.Add(float64(max(0, n))) }

// DeliveryConfirmed notes how long after posting a message was confirmed.
func (m *Metrics) DeliveryConfirmed(took time.Duration) { m.confirmSeconds.Observe(took.Seconds()) }

// MailboxAdded counts a message that was put into a mailbox, which now holds
// depth messages.
func (m *Metrics) MailboxAdded(depth int64) {
	m.mailbox.Inc()
	m.mailboxDepth.Observe(float64(depth))
}

// MailboxRemoved counts messages that left a mailbox for any reason.
func (m *Metrics) MailboxRemoved(n int) { m.mailbox.Sub(float64(n)) }

// MailboxTotal sets the number of messages in all mailboxes, as found at start.
func (m *Metrics) MailboxTotal(n int) { m.mailbox.Set(float64(n)) }

// PushSent counts an attempt to push; result is "ok", "token_gone" or "failed".
func (m *Metrics) PushSent(platform, kind, result string) {
	m.pushes.three(platform, kind, result).Inc()
}

// JobRun counts an attempt to run a job. JobRun, JobPanic and JobDead make
// Metrics an observer of the local queue.
func (m *Metrics) JobRun(kind string, _ int, took time.Duration, failed bool) {
	result := "ok"
	if failed {
		result = "failed"
	}
	m.jobs.two(kind, result).Inc()
	m.jobSeconds.one(kind).Observe(took.Seconds())
	if failed {
		m.errors.one("job").Inc()
	}
}

// JobPanic counts a job whose handler panicked.
func (m *Metrics) JobPanic(string) { m.panics.one("job").Inc() }

// JobDead counts a job that was put aside after its last attempt.
func (m *Metrics) JobDead(kind string) { m.deadJobs.one(kind).Inc() }

// HandlerError counts an event ("connect", "frame", "confirmed", "disconnect")
// whose handler failed.
func (m *Metrics) HandlerError(event string) { m.errors.one(event).Inc() }

// HandlerPanic counts an event whose handler panicked.
func (m *Metrics) HandlerPanic(event string) { m.panics.one(event).Inc() }

// TableOperation counts an operation on the table and notes how long it took.
func (m *Metrics) TableOperation(operation, result string, took time.Duration) {
	m.tableOps.two(operation, result).Inc()
	m.tableSeconds.one(operation).Observe(took.Seconds())
}
