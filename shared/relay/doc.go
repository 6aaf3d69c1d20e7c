// Package relay is the core of Blindpost, free of any dialect and of AWS. It
// knows connections and who is behind them, groups of members and their
// presence, the mailbox of each member, delivery, limits, jobs and push
// intents. A dialect (package dialect/...) knows identities, admission, frames
// and its own rules, and calls the core.
//
// # Words
//
// A group is a set of members that may know of each other (a Skald namespace, an
// Agentknock device with its clients, an Aelos boat with its viewers). A member
// has at most one connection at a time; a newer one replaces the older. Each
// member has a lane: its mailbox, an ordered list of frames under a cap.
//
// # One item decides
//
// Everything that decides about delivery to a member stands in one item of the
// table, the member item: its current connection, whether that connection is
// still draining or open, the last number given out in its lane, the number of
// stored frames, the fences of its senders. So every decision is one
// conditional write, on DynamoDB as on bbolt, and no two handlers can disagree:
//
//   - Append puts a frame into the lane under the next number, in one
//     transaction with the member item and on condition that the connection is
//     what the sender saw. It is exact about the cap and leaves no holes.
//   - A member that has just connected is draining: others only append. The pump
//     posts the lane in order and turns the member open on condition that nothing
//     was appended since it looked. From then on senders append, then post.
//   - So a frame for a member that is not open goes through its lane, whatever it
//     is: a live message or a presence event waits there as a transient entry,
//     bound to that connection and gone with it. Nothing overtakes.
//   - A frame leaves the lane only when it is confirmed, one by one, so a confirmed
//     frame never takes an unconfirmed one with it.
//   - Each connection of a member has an epoch. A recipient remembers the highest
//     epoch that each sender has spoken with; what an older connection still
//     brings is refused, because it would arrive after newer messages.
//
// Within one process the frames of one member, over all its connections, are
// also handled one after another (see Hold); that closes the window between
// looking at the member item and posting a live message, which no condition can.
// Where every handler has a process of its own (see Options.Distributed), a connection
// waits for the frames of the one that it has replaced.
//
// # Once more
//
// Every handler may die between any two steps, or lose the answer to a write, and is
// then called again with the same event or job. So each write is one that may be done
// twice, or leaves a trace by which it is known again, and what follows it is done by
// whoever finds it (see package table). What a handler has told the others before it
// died may have been old; whoever does its work again tells them how it is now.
package relay
