package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/push"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// process is what lives and dies together: the single binary, or one run of a
// function.
type process struct {
	ctx    context.Context
	cancel context.CancelFunc
	dead   bool
	inst   *instance
}

func newProcess(inst *instance) *process {
	p := &process{inst: inst}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// kill ends a process: none of its operations happen any more, and who waits for
// a lock in it stops waiting.
func (p *process) kill() {
	if !p.dead {
		p.dead = true
		p.inst.broken = true
		p.cancel()
	}
}

// instance is a relay with its dialect, wired to a schedule.
type instance struct {
	sim     *sim
	relay   *relay.Relay
	dialect *skald.Dialect
	broken  bool // it was stopped in the middle and may hold locks for ever
}

// functionLocks is how many locks a function's relay has. It serves one handler at a
// time, nobody waits for them, and a new relay is made for each new process: what one
// remembers dies with it.
const functionLocks = 8

// newInstance makes a relay: of a function, or of the single binary.
func newInstance(m mode) *instance {
	in := &instance{}
	locks := 0 // the default
	if m == functions {
		locks = functionLocks
	}
	in.relay = relay.New(relay.Options{
		Table: tableOfTask{}, Queue: queueOfTask{}, Front: frontOf{in}, Pusher: pusherOfTask{},
		Log: slog.New(&logWatch{inst: in}),
		Now: func() time.Time { return in.sim.now() }, Random: in,
		Distributed: m == functions, Locks: locks,
		NewID: func() string {
			in.sim.mu.Lock()
			defer in.sim.mu.Unlock()
			in.sim.ids++
			return fmt.Sprintf("id%d", in.sim.ids)
		},
	})
	in.dialect = skald.New(in.relay, skald.Options{
		Limits:   skald.DefaultLimits(),
		PushText: push.Text{Title: "Skald", Body: "Action required"},
	})
	in.relay.Use(in.dialect)
	return in
}

// Read makes challenges.
func (in *instance) Read(b []byte) (int, error) {
	if len(b) != 32 {
		return 0, errors.New("the simulation knows only challenges")
	}
	in.sim.mu.Lock()
	defer in.sim.mu.Unlock()
	in.sim.nonces++
	return copy(b, challenge(in.sim.nonces)), nil
}

var _ io.Reader = (*instance)(nil)

func (in *instance) serve(s *sim) {
	in.sim = s
	in.relay.SetLimits(s.relayLimits())
	l := skald.DefaultLimits()
	l.NamespaceTTL = namespaceTTL
	if s.plan.large {
		l.MaxFrame = largeFrame + 4096
	}
	in.dialect.SetLimits(l)
}

// largeFrame is a size of which a pump sends three before it waits.
const largeFrame = 350 << 10

// handlerProcess is the process that the next handler runs in.
func (s *sim) handlerProcess() *process {
	if s.plan.mode == oneProcess {
		if s.mutation != nil && s.mutation.alone {
			return s.lonelyProcess()
		}
		return s.proc
	}
	if n := len(s.idle); n > 0 {
		in := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return newProcess(in)
	}
	in := newInstance(functions)
	in.serve(s)
	return newProcess(in)
}

// lonelyProcess is a mutation: it dies with the others, but has locks of its own.
func (s *sim) lonelyProcess() *process {
	in := newInstance(oneProcess)
	in.serve(s)
	p := newProcess(in)
	s.lonely = append(s.lonely, p)
	return p
}

// retire takes back the relay of a handler that has ended.
func (s *sim) retire(p *process) {
	if s.plan.mode == functions {
		p.cancel()
		if !p.inst.broken {
			s.idle = append(s.idle, p.inst)
		}
	}
}

// boot starts the single binary.
func (s *sim) boot() {
	if s.plan.mode == oneProcess {
		in := newInstance(oneProcess)
		in.serve(s)
		s.proc = newProcess(in)
	}
}

// crash ends the single binary in the middle of what it is doing, and starts it
// again. What was in memory is lost.
func (s *sim) crash() {
	s.tracef("CRASH of the process")
	s.counts.Crashes++
	s.proc.kill()
	for _, p := range s.lonely {
		p.kill()
	}
	s.lonely = nil
	s.killParked()
	for _, sock := range s.sockList {
		sock.processDied()
	}
	s.jobs = nil
	if s.closing != nil && s.store.Durable {
		if err := s.closing(); err != nil {
			s.violate("storage", "failed to close the table: %v", err)
		}
	}
	if err := s.open(); err != nil {
		s.violate("storage", "failed to open the table again: %v", err)
		return
	}
	s.boot()
	s.ghost.compare("after a crash")
	s.sweepDue = true
	s.recover()
}

// recover is what the single binary does before it takes connections.
func (s *sim) recover() {
	quick := s.quick
	s.quick = true
	s.task("recover", s.proc, nil).begin(func(ctx context.Context) (any, error) {
		recovery := s.proc.inst.relay.NewRecovery(true)
		for _, ns := range s.spaces {
			items, err := table.QueryAll(ctx, s.table, table.Query{Partition: groupPrefix + ns.group})
			if err != nil {
				return nil, err
			}
			for _, it := range items {
				if err := recovery.Visit(ctx, it); err != nil {
					return nil, err
				}
			}
		}
		return nil, recovery.Finish(ctx)
	})
	s.pause()
	s.reap()
	s.quick = quick
}

// logWatch reads what the relay logs.
type logWatch struct{ inst *instance }

var _ slog.Handler = (*logWatch)(nil)

func (w *logWatch) Enabled(context.Context, slog.Level) bool { return true }
func (w *logWatch) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *logWatch) WithGroup(string) slog.Handler            { return w }

func (w *logWatch) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	w.inst.sim.mu.Lock()
	defer w.inst.sim.mu.Unlock()
	w.inst.sim.watchText("log record", text)
	return nil
}
