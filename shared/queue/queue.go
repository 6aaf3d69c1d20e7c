// Package queue is the contract for jobs: work that must be done soon, later or
// repeatedly, outside the handler that sent it.
//
// Duties of an implementation: it runs a job that Send has accepted at least once, not
// before its time; a job may run twice or late. It runs the jobs of one Group one after
// another, in the order in which they became due. It retries a failed job with growing
// delay. After the last try it puts the job aside and counts it, and the jobs behind it
// go on.
//
// Duties of a handler: it must be idempotent, and must check the current state instead of
// assuming that its job is still needed.
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
	// Once, if set, says that one of two jobs of the same Kind and Group is enough if they
	// are sent within minutes of each other. A queue that cannot do that may run both.
	Once bool
	// Body is private to the kind and never logged. Send copies it; a handler must
	// neither keep nor change it.
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
