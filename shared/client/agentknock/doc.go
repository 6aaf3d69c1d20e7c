// Package agentknock implements clients and devices of Agentknock v1 for the conformance
// suite, the demo, the bench and the simulation. It is written from the two pages of the
// specification and shares no code with the relay's dialect, so that each checks the other.
//
// There are two levels. [Relay] dials and calls endpoints. [Conn] is one WebSocket of a
// client or a device; it can send any frame, even forbidden ones, and checks that the
// specification allows the received frames for its role. On top, [Session] runs a client
// and [Desk] a device: they reconnect and follow the recovery rules, so that an exchange
// continues over any number of lost connections.
//
// Everything is safe for concurrent use. Nothing is encrypted: a payload is any JSON value
// of the caller.
package agentknock
