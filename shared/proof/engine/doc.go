// Package engine runs a relay in a world of its own, where a seed decides about
// everything that happens: the order of all effects, what fails, what dies, and
// what peers do. It knows the core and no dialect; a [World] brings the dialect, its
// peers, and the model that judges what is written, posted and said.
//
// # How a schedule runs
//
// A handler of the relay is a [Task]. Each of its operations on the table, the front,
// the queue and the push provider waits until the scheduler releases it, so at any
// moment at most one of them has an effect, and the order of all effects is a
// function of the seed. A handler may have several operations waiting at once. The
// scheduler picks among them, frames that have arrived, frames that a peer has not
// read yet, disconnects, jobs, what peers want to do, and the passing of time; and it
// may let an operation fail, have it done and reported as failed, or stop the handler
// or the whole process before or after it.
//
// # Two modes
//
// In [OneProcess] all handlers share a relay, a crash takes connections, jobs and
// memory along, and the front confirms. In [Functions] each handler has a process of
// its own, which is used again when it has ended well; a crash takes that one, its
// event comes again, events may come twice, a disconnect may never come, and the
// front knows nothing of its peers.
//
// A run takes place in a testing/synctest bubble, so its time is fake. The package is
// for tests only: nothing in it is part of a binary.
package engine
