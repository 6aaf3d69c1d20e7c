// Package agentknock has clients and devices of Agentknock v1 for tests: for the
// conformance suite, the demo, the bench and the simulation. It is written from the
// two pages of the specification and shares no code with the relay's own dialect,
// so that the two check each other.
//
// There are two levels. [Relay] dials and calls, and [Conn] is one WebSocket of a
// client or a device, on which everything can be sent, forbidden frames included;
// what comes is checked against what the specification lets the relay send to
// that role. On top, [Session] is a client and [Desk] a device at work: they keep a
// connection, reconnect, and play by the recovery rules, so that an exchange goes on
// through any number of lost connections.
//
// Everything may be used by several goroutines at once. Nothing here encrypts: a
// payload is whatever JSON value the caller gives.
package agentknock
