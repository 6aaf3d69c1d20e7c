package server

import (
	"time"

	"blindpost/shared/gateway"
)

// Observer receives what happens, for metrics. The server calls its methods on the
// hot path, from many goroutines at once, sometimes while it holds the lock of a
// connection: they must be quick and must not call back into the server.
type Observer interface {
	// Opened and Closed are called once each for every accepted connection.
	Opened()
	Closed(code gateway.CloseCode)
	// Refused is an upgrade request that was answered with this HTTP status.
	Refused(status int)
	// FrameIn is a message that a handler is about to see, FrameOut one that was
	// posted; bytes is the payload.
	FrameIn(bytes int)
	FrameOut(bytes int)
	// Confirmed says how many marks were confirmed, and how long after their ping was
	// queued.
	Confirmed(marks int, latency time.Duration)
	// SlowReader is a connection closed because its peer read too slowly.
	SlowReader()
	// Failed is an event ("connect", "frame", "confirmed", "disconnect") whose
	// handler has failed.
	Failed(event string)
	// Panicked is a panic in a handler.
	Panicked()
	// Buffered is a change of the bytes that wait to be written, over all
	// connections.
	Buffered(delta int)
}

// NopObserver ignores everything. Embed it to observe only a part.
type NopObserver struct{}

var _ Observer = NopObserver{}

func (NopObserver) Opened()                      {}
func (NopObserver) Closed(gateway.CloseCode)     {}
func (NopObserver) Refused(int)                  {}
func (NopObserver) FrameIn(int)                  {}
func (NopObserver) FrameOut(int)                 {}
func (NopObserver) Confirmed(int, time.Duration) {}
func (NopObserver) SlowReader()                  {}
func (NopObserver) Failed(string)                {}
func (NopObserver) Panicked()                    {}
func (NopObserver) Buffered(int)                 {}
