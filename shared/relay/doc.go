// Package relay is the core of Blindpost, free of any dialect and of AWS. It
// knows connections and the members behind them, groups of members and their
// presence, the mailbox of each member, delivery, limits, jobs and push
// intents. A dialect (package dialect/...) knows identities, admission, frames
// and its own rules, and calls the core.
//
// # Terms
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
//     bound to that connection and deleted when it ends. Nothing overtakes.
//   - A frame leaves the lane only when it is confirmed, one by one, so a confirmed
//     frame never takes an unconfirmed one with it.
//   - Each connection of a member has an epoch. The item of a recipient holds the
//     highest epoch that each sender has sent with, its fence. A frame from an older
//     connection is refused, because it would arrive after newer messages.
//
// Within one process the frames of one member, over all its connections, are
// also handled one after another (see Hold); that closes the window between
// looking at the member item and posting a live message, which no condition can.
// Where every handler has a process of its own (see Options.Distributed), a connection
// waits for the frames of the one that it has replaced.
//
// # Retries
//
// Every handler may die between any two steps, or lose the answer to a write, and is
// then called again with the same event or job. So each write may be done twice, or
// leaves a trace by which a second run finds it; that run does the steps after it (see
// package table). What a handler has told the others before it died may have been old;
// the run that does its work again tells them the present state.
//
// # How a connection ends
//
//	connected --Join--> draining <--pump--> open
//	    |                  |                 |
//	    |                  +-- newer Join ---+--> replaced
//	    |                  +-- found gone ---+--> lost
//	    |                  |                 |      |
//	    +------ end -------+------ end ------+-----end----> ended: no record
//
// A connection ends when its front says so (Disconnect), or when a job does in its place
// (jobEnd). Its member leaves when the member item is written without it; what follows
// are pushes, dropped transients and presence (afterLeave). A connection is lost when a
// post or the sweeper finds it gone, and replaced when its member joins with a newer one.
//
//   - Join: the dialect, with the member held. It writes the record, then the item. A crash
//     before the item leaves a record without a member: its end has nobody to take out. After
//     a crash behind the item the admission comes again and tells the others again.
//   - draining to open: the pump. Back: a post that has failed; the job that pumps again is
//     sent before the item is written.
//   - replaced: Join writes the item, closes the old connection and sends jobEnd for it,
//     which closes it if Join could not. After a crash in between the admission comes again
//     and closes it (Conn.after); if it does not, the next frame or the end of the new one
//     does (closeBefore), and a removal too (attrPrevious). Frames of the new one wait at
//     most turnWait.
//   - lost: a post sends jobLost, with which the member leaves; the record stays, because
//     frames of the connection may still wait. The sweeper sends jobEnd. A job that is not
//     sent is left to the next post (reportLostAgain) and to the sweeper.
//   - ended: the member leaves, unless it has left already (recLeft) or has joined with a
//     newer connection. Then the dialect's Disconnected is called and the record is deleted.
//     After a crash in between the event or job comes again, and attrLeft says that the
//     item was written.
//
// In one process no event comes again after a crash: all connections are lost with it,
// and Recovery lets their members leave at the next start.
package relay
