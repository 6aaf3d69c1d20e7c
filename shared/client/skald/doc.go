// Package skald is the other end of a Skald relay (protocol v2): the
// agent behind NAT and the client (phone) paired with it, end-to-end
// encryption included.
//
// # What it promises
//
//   - The relay sees ciphertext only. Keys, payloads and tokens appear in no
//     error and in no String method; keys are shortened there.
//   - A nonce is never used twice for one key, also after a crash: counters are
//     reserved in blocks in the [Store] before the first of a block is sent. A
//     crash skips numbers, it never repeats them. This holds as long as no old
//     copy of a state is put back and no two processes share one;
//     [FileStore] refuses the latter.
//   - A message is handed out at most once: its counter is stored before it is
//     handed out, and a counter not above the last stored one is refused, also
//     after a restart.
//   - Messages to one peer are written in the order of their counters, whoever
//     calls Send, because a receiver refuses an older counter.
//   - Whatever the relay sends, nothing panics and nothing grows without bound.
//
// # What it cannot promise
//
// The protocol has no acknowledgement between a sender and the relay. Send
// returns nil when the frame was written to the socket. If it returns an error
// after the connection broke, the frame was written not at all, or in part, or
// (rarely) completely. A message that was written just before a connection
// broke may never have reached the relay. Who needs certainty sends a payload,
// waits for a [KindAck] payload that names it (see [NewAck]) and sends again;
// the receiver knows a repetition by the payload's id.
//
// On the receiving side a pong tells the relay that every frame before it was
// read. A process that is killed while events wait in the queue loses these
// events. [Agent.Run] and [Client.Run] hand out what waits before they return.
//
// # Layers
//
// [Agent] and [Client] are complete: connect, authenticate, reconnect, seal,
// open, persist. [Conn] carries single frames for tests and load generators.
// [Identity], [Session], [Frame], [Payload] and [PairingQR] are the
// cryptography and the formats without any network.
//
// Time comes from package time, so that everything here runs inside a
// testing/synctest bubble; randomness is injected with [Config].
package skald
