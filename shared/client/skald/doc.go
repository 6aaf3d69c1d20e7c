// Package skald is the other end of a Skald relay (protocol v2): the
// agent behind NAT and the client (phone) paired with it, end-to-end
// encryption included.
//
// # What it promises
//
//   - The relay sees ciphertext only. Keys, payloads and tokens appear in no
//     error and in no String method; keys are shortened there.
//   - A nonce is never used twice for one key, even after a crash: counters are
//     reserved in blocks in the [Store] before the first of a block is sent. A
//     crash skips numbers and never repeats them. This holds as long as no old
//     copy of a state is restored and no two processes share one; [FileStore]
//     prevents the latter.
//   - A message is delivered to OnEvent at most once: its counter is stored first,
//     and a counter not above the last stored one is refused, also after a restart.
//   - Messages to one peer are written in the order of their counters, even with
//     concurrent calls of Send, because a receiver refuses an older counter.
//   - No input of the relay causes a panic or unbounded growth.
//
// # What it cannot promise
//
// The protocol has no acknowledgement between a sender and the relay. Send
// returns nil when the frame was written to the socket. If it returns an error
// after the connection broke, the frame was written not at all, or in part, or
// (rarely) completely. A message that was written just before a connection
// broke may never have reached the relay. A caller that needs certainty waits for a
// [KindAck] payload with the payload's id (see [NewAck]) and otherwise sends again; the
// receiver recognises a repetition by the id.
//
// On the receiving side a pong tells the relay that every frame before it was
// read. A process that is killed while events wait in the queue loses these
// events. [Agent.Run] and [Client.Run] deliver waiting events before they return.
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
