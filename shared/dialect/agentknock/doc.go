// Package agentknock speaks Agentknock v1 on top of the core: the upgrade paths of
// clients and of devices, their frames, the HTTP endpoints of a device, and the
// rules between them. Its specification is the client-relay protocol, and for the
// other side the page about the device.
//
// # What it promises
//
//   - An ack means stored: it is sent after the write that makes the message durable
//     has returned.
//   - The first payload accepted for a message is the only one that is ever delivered
//     for it, byte for byte as it came.
//   - An exchange is in one of the states of the specification, always. What may
//     follow what is decided in one place, see [Exchange.Next].
//   - What has ended stays ended: no message, acknowledgement or repetition brings an
//     exchange back, and none creates one under an id that was used.
//   - Between request and completion of one exchange order holds: the completion is
//     sent to a device only when it has acknowledged the request, or right behind it.
//
// # How it keeps its data
//
// A device is a group of the core with one member, the device itself: that gives it
// its one current connection, its presence and its push token. Clients are no members,
// for they may have several connections at once.
//
// All else that belongs to a device is in one partition per life of it:
//
//	n                  counters: exchanges given out, open ones, stored bytes
//	c/CLIENT           a client: token (hashed), state, counters of its own
//	e/REQUEST          an exchange: the item that decides about it
//	o/NUMBER           an exchange that is not over, in the order of acceptance; gone,
//	                   or expired, when the exchange is
//	p/REQUEST/KIND     a payload that waits for its recipient
//	g/WHAT             how often somebody has guessed in this minute, see guess.go
//
// An exchange changes by one transaction, on condition that its item is the one that
// was read (its version). The other items follow in the same transaction, so that no
// crash leaves them apart. What is sent comes after it; whoever finds that it may not
// have been sent sends it again.
//
// Exchanges of initial pairings are counted once more by themselves: anybody who knows the
// address can begin them, so they get a part of what a device may have, see share.
//
// Counters can be too high, because an exchange that expires does so without anybody
// writing it down, and are counted anew when a limit is reached. They are never too
// low.
//
// Within one process all handlers of a device run one after another (they hold its
// member). Nothing relies on that but the number of repeated frames.
package agentknock
