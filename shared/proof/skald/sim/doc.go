// Package sim runs the real core and the real Skald dialect in a world of its
// own: many agents and phones, a simulated front, job queue and push provider,
// fake time (testing/synctest), and a table that the caller chooses. Everything
// that happens is decided by a seed, and after every step a model checks that
// what the relay promises holds. docs/reliability.md says what that is, in which
// mode, and where the promises end.
//
// # How a schedule runs
//
// A handler of the relay is a task (task.go). Each of its operations on the
// table, the front, the queue and the push provider waits until the scheduler
// (schedule.go) releases it, so at any moment at most one task has an effect,
// and the order of all effects is a function of the seed. The scheduler picks
// among the waiting operations, frames, pongs, disconnects, jobs, peers that want
// to do something, and the passing of time; and it may let an operation fail, or
// stop the handler or the whole process before or after it.
//
// Two modes differ in what shares a process, what a crash takes along and what a
// front knows (plan.go). The same seed makes the same schedule over any table that
// keeps the contract.
//
// # The model
//
// The ghost (ghost.go) mirrors members, mailboxes, windows and groups by watching
// every write as it takes effect. The checks are in commit.go, lanes.go and windows.go
// (what may be written), observe.go (what may be posted), answers.go (what may be
// said), read.go (what a peer may receive), secrets.go (what may be logged) and
// finish.go (what must be true when the faults have stopped). These files and the
// mutations are the only ones that know how the core lays out its items.
//
// # The mutations
//
// Mutations puts known mistakes between a relay and its surroundings; a test
// shows that the same checks find each of them within a short budget.
//
// The package is for tests only: nothing in it is part of a binary.
package sim
