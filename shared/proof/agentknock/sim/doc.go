// Package sim runs the real core with the Agentknock dialect in the world of
// package engine: devices that sleep, break off and come back, clients that pair, and
// publish, resume and complete exchanges over several connections, all of them now
// and then at odds with the protocol.
//
// # The model
//
// The store (store.go) looks at every item of a device as it is written: exchanges go
// from one valid state to another and never back, a payload is fixed by whoever was
// first, what is listed as open is open, counters are never too low, nothing is
// brought back. The wire (wire.go) looks at every frame as it is posted, and the peers
// (client.go, device.go) at what they read: an ack means stored, an ack comes before
// its receipt, a request before its completion, everything that waits before
// caught_up, nothing that is another client's, nothing after a revocation. finish.go
// says what must be true when the faults have stopped and everybody has come back.
//
// store.go and the mutations are the only files that know how the dialect lays out
// its items.
package sim
