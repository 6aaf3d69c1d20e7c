package engine

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// process is what lives and dies together: the single binary, or one run after another
// of a function that is kept warm.
type process struct {
	e       *Engine
	ctx     context.Context
	cancel  context.CancelFunc
	dead    bool
	relay   *relay.Relay
	dialect relay.Dialect
}

// Instance is the relay that a call runs in.
type Instance struct {
	Relay   *relay.Relay
	Dialect relay.Dialect
}

// recordTTL is when the functions forget the record of a connection.
const recordTTL = longest + 10*time.Minute

func (e *Engine) newProcess() *process {
	p := &process{e: e}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	o := relay.Options{
		Table: tableOfTask{e}, Queue: queueOfTask{}, Front: frontOfTask{e}, Pusher: pusherOfTask{},
		Log: slog.New(&logWatch{e}), Now: e.Now, Random: drawn{e}, NewID: e.newID,
	}
	if e.Plan.Mode == Functions {
		o.Distributed, o.ConnRecordTTL = true, recordTTL
	}
	p.relay = relay.New(o)
	p.dialect = e.world.Dialect(p.relay, pusherOfTask{})
	p.relay.Use(p.dialect)
	return p
}

func (e *Engine) newID() string {
	return "id" + strconv.FormatUint(e.serial.Add(1), 10)
}

// drawn are random bytes that no two readers share.
type drawn struct{ e *Engine }

var _ io.Reader = drawn{}

func (d drawn) Read(b []byte) (int, error) {
	var word [8]byte
	for n := 0; n < len(b); n += 8 {
		x := d.e.serial.Add(1) * 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(word[:], x^x>>31)
		copy(b[n:], word[:])
	}
	return len(b), nil
}

// kill ends a process: none of its operations happen any more, and who waits for a
// lock in it stops waiting.
func (p *process) kill() {
	if !p.dead {
		p.dead = true
		p.cancel()
	}
}

// handlerProcess is the process that the next handler runs in.
func (e *Engine) handlerProcess() *process {
	if e.Plan.Mode == OneProcess {
		return e.proc
	}
	if n := len(e.idle); n > 0 {
		p := e.idle[n-1]
		e.idle = e.idle[:n-1]
		return p
	}
	return e.newProcess()
}

// retire takes back the process of a handler that has ended.
func (e *Engine) retire(p *process) {
	if e.Plan.Mode == Functions && !p.dead {
		e.idle = append(e.idle, p)
	}
}

// crash ends the single process in the middle of what it is doing, and starts it
// again. What was in memory is lost.
func (e *Engine) crash() {
	e.tracef("CRASH of the process")
	e.proc.kill()
	e.killWaiting()
	for _, k := range e.list {
		k.processDied()
	}
	e.jobs = nil
	e.open()
	e.world.Crashed()
	e.proc = e.newProcess()
	e.sweepDue = true
	e.recover()
}

// recover has the process do what it does before it takes connections. It may die
// again meanwhile.
func (e *Engine) recover() {
	p := e.proc
	e.recovering = true
	t := e.newTask("recover", p, nil)
	t.ended = func(t *Task) {
		if t.Killed {
			return // the next one recovers
		}
		e.recovering = false
		if t.Err != nil {
			e.tracef("the process does not start, and is started again")
			p.kill()
			e.crash()
		}
	}
	t.begin(func(ctx context.Context) (any, error) {
		recovery := p.relay.NewRecovery(true)
		for _, g := range e.world.Groups() {
			items, err := table.QueryAll(ctx, p.relay.Table(), table.Query{Partition: relay.GroupPrefix + g})
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
}

// logWatch shows the world what the relay logs.
type logWatch struct{ e *Engine }

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
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	w.e.world.Text("log record", text)
	return nil
}

// isVolatile reports whether a partition dies with the single process.
func (e *Engine) isVolatile(partition string) bool {
	if e.Plan.Mode != OneProcess {
		return false
	}
	has := func(prefix string) bool { return len(partition) >= len(prefix) && partition[:len(prefix)] == prefix }
	return has(relay.ConnPartition) || has(relay.AddressPartition) || slices.ContainsFunc(e.world.Volatile(), has)
}
