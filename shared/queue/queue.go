// Package queue is the contract for jobs: what must happen soon, later, or
// again, outside the handler that asked for it.
//
// Duties of an implementation: a job that Send has accepted is run at least
// once, not before its time; it may run twice or late. Jobs of one Group run
// one after another, in the order in which they became due. A job that fails is
// tried again with growing delay, and after the last try it is put aside, is
// counted, and does not stop the jobs behind it.
//
// Duties of a handler: to be idempotent, and to look at the state of the world
// instead of trusting that its job is still wanted.
package queue

import (
	"context"
	"time"
)

// Job is one piece of work.
type Job struct {
	// Kind selects the handler, for example "push".
	Kind string
	// Group orders jobs; jobs without a group run in parallel.
	Group string
	// Once, if set, says that of two jobs of one Kind and Group one is enough if they are
	// sent within minutes of each other. Not every queue can do that: it may run both.
	Once bool
	// Body is private to the kind. It is never logged. Send copies it; a
	// handler neither keeps nor changes it.
	Body []byte
	// At is the time before which the job must not run; zero means now.
	At time.Time
	// Attempt counts from 1; set by the queue.
	Attempt int
}

// Queue accepts jobs.
type Queue interface {
	// Send hands over a job. When it returns nil the job will run.
	Send(ctx context.Context, j Job) error
}

// Handler runs a job. An error makes the queue try again later.
type Handler func(ctx context.Context, j Job) error
