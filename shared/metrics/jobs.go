package metrics

import "time"

// JobRun counts an attempt to run a job. JobRun, JobPanic and JobDead make Metrics an
// observer of the local queue.
func (m *Metrics) JobRun(kind string, _ int, took time.Duration, failed bool) {
	result := "ok"
	if failed {
		result = "failed"
		m.errors.one("job").Inc()
	}
	m.jobs.two(kind, result).Inc()
	m.jobSeconds.one(kind).Observe(took.Seconds())
}

// JobPanic counts a job whose handler panicked.
func (m *Metrics) JobPanic(string) { m.panics.one("job").Inc() }

// JobDead counts a job that was put aside after its last attempt.
func (m *Metrics) JobDead(kind string) { m.deadJobs.one(kind).Inc() }
