// Package agentknock speaks Agentknock v1 on top of the core: the upgrade paths of
// clients and of devices, their frames, the HTTP endpoints of a device, and the
// rules between them. Its specification is the client-relay protocol, and for devices
// the page about the device.
//
// # What it promises
//
//   - An ack means stored: it is sent after the write that makes the message durable
//     has returned.
//   - The first payload accepted for a message is the only one that is ever delivered
//     for it, byte for byte as it came.
//   - An exchange is always in one of the states of the specification. One function
//     decides about every transition, see [Exchange.Next].
//   - An exchange that has ended stays ended: no message, acknowledgement or repetition
//     reopens it, and no exchange begins under an id that was used.
//   - A device gets the completion of an exchange only when it has acknowledged the
//     request, or right behind the request.
//
// # How it keeps its data
//
// A device is a group of the core with one member, the device itself: that gives it
// its one current connection, its presence and its push token. Clients are no members,
// for they may have several connections at once.
//
// Everything else of a device is in one partition per generation of the device:
//
//	n                  counters: exchanges given out, open ones, stored bytes
//	c/CLIENT           a client: token (hashed), state, counters of its own
//	e/REQUEST          an exchange: the item that decides about it
//	o/NUMBER           an exchange that is not over, in the order of acceptance; gone,
//	                   or expired, when the exchange is
//	p/REQUEST/KIND     a payload that waits for its recipient
//	g/WHAT             the number of guesses in this minute, see guess.go
//
// One transaction changes an exchange, on condition that the version of its item is the
// one that was read. It changes the other items too, so that they agree after a crash.
// Frames are posted after it; a later handler that finds that they may not have been
// posted posts them again.
//
// Exchanges of initial pairings have counters of their own as well: every client that knows
// the address can begin them, so they may use only a part of the limits, see share.
//
// Counters can be too high, because an exchange expires without a write; they are
// recounted when a limit is reached. They are never too low.
//
// Within one process all handlers of a device run one after another (they hold its
// member). That only keeps the number of repeated frames small; correctness does not
// need it.
package agentknock
