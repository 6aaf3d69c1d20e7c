// Package bench measures a relay from outside: it is a load generator with
// stopwatches. It shares the processors with the relay, so it is built to be
// cheap, but it takes no short cut that a client could not take: every
// connection is one of its own with a handshake of its own, every
// authentication is signed by an identity of its own, every frame is masked with
// a key of its own, and pings are answered.
//
// # What it promises
//
//   - It measures only what works: each message carries a number, and one that is
//     lost, comes twice or out of order, or any error of the relay, fails the part
//     that is being measured instead of spoiling its number.
//   - A latency belongs to a stated load. Messages are sent at a fixed mean rate
//     at random times, and counted from when they were due, not from when they
//     were written: a relay that stalls cannot make the generator wait and so hide
//     what it has done (coordinated omission).
//   - A stored message counts when the relay has answered a request that was sent
//     behind it, on the same connection. The relay handles the frames of one
//     connection in order, so the message is in the database by then.
//   - A drained message counts when the recipient has it, in order, and the relay
//     has taken note: it has answered a request sent behind the recipient's pong.
//     Afterwards each mailbox is looked into once more and must be empty.
//   - An Agentknock exchange counts when it is over for both sides: request, response
//     and completion were each acknowledged by the relay, which means stored, delivered,
//     and acknowledged by whom they are for, and both sides have been told so.
//   - What Aelos boats publish is sealed by them and opened by their viewers, after
//     a real handshake. A snapshot that is lost fails the part, although the protocol
//     allows it: viewers of the generator keep up.
//   - Memory is what the operating system says about the relay's process.
//
// # Shape
//
// wire.go, upgrade.go and letter.go are a minimal WebSocket client, peer.go and
// home.go its protocol, fleet.go the connections of one part. auth.go, idle.go,
// live.go, pace.go, stored.go and drain.go are the parts; knock.go and knock_home.go
// are that of Agentknock, aelos.go and aelos_run.go that of Aelos, each with the peers of
// its test suite; run.go runs them,
// report.go is the result.
package bench
