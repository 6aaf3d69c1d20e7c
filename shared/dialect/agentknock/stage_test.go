package agentknock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/relay"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
	twotables "blindpost/shared/table/route"
)

// stage is a relay without any concurrency: a table, a front and a queue that do one
// thing after another, and can die before or after any of them.
type stage struct {
	t testing.TB
	// functions is how Lambda runs handlers: a crash ends one of them, which is tried
	// again. Else a crash ends the process: connections and jobs are gone.
	functions bool

	now     time.Time
	durable *mem.Table
	memory  *mem.Table // what dies with the process
	relay   *relay.Relay
	knock   *Dialect

	conns  map[gateway.Conn]*stageConn
	jobs   []queue.Job
	ended  []gateway.Conn // whose Disconnect is to come
	pushes []push.Notification
	serial int

	// ops counts what was done since crashAt was set; the one with that number crashes,
	// having had its effect or not.
	ops         int
	crashAt     int
	afterEffect bool
	dead        bool

	// failAt is the operation, counted as those above, that fails, having had its effect or
	// not; then failed is called.
	failAt int
	failed func()

	// beforeGet, if set, is called before an item is read: what another process does.
	beforeGet func(table.Key)
}

// stageConn is a connection as the front knows it.
type stageConn struct {
	open, closed bool
	code         gateway.CloseCode
	inbox        []string
	// lasts, if not 0, is the number of posts before it is gone, which is not reported.
	lasts int
}

// stageStart is when all begins.
var stageStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var (
	errCrash   = errors.New("crashed")
	errTrouble = errors.New("trouble")
)

func newStage(t testing.TB, functions bool) *stage {
	s := &stage{t: t, functions: functions, now: stageStart, conns: map[gateway.Conn]*stageConn{}}
	s.durable = mem.New(s.clock)
	s.start()
	return s
}

func (s *stage) clock() time.Time { return s.now }

// start starts a process.
func (s *stage) start() {
	s.memory = mem.New(s.clock)
	split := []string{relay.ConnPartition, relay.AddressPartition, SocketPartition}
	o := relay.Options{
		Table: stageTable{s, twotables.New(s.memory, split, s.durable)}, Queue: stageQueue{s}, Front: stageFront{s},
		Log: slog.New(slog.DiscardHandler), Now: s.clock, Random: rand.Reader,
		NewID: func() string { s.serial++; return fmt.Sprint("id", s.serial) },
	}
	if s.functions {
		o.ConnRecordTTL = 3 * time.Hour
	}
	s.relay = relay.New(o)
	s.knock = New(s.relay, Options{Limits: DefaultLimits(), Pusher: stagePusher{s}})
	s.relay.Use(s.knock)
}

// op runs one operation, unless the process dies first or the context has ended.
func (s *stage) op(ctx context.Context, do func() error) error {
	if s.dead {
		return errCrash
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.ops++
	if s.ops == s.failAt {
		if s.afterEffect {
			_ = do()
		}
		s.failed()
		return errTrouble
	}
	if s.ops != s.crashAt {
		return do()
	}
	if s.afterEffect {
		_ = do()
	}
	s.dead = true
	return errCrash
}

// revive brings a process back after a crash and reports whether there was one.
func (s *stage) revive() bool {
	if !s.dead {
		return false
	}
	s.dead = false
	if s.functions {
		return true
	}
	for _, c := range s.conns {
		c.closed = true
	}
	s.jobs, s.ended = nil, nil
	s.start()
	y := s.relay.NewRecovery(true)
	items := s.everything(relay.GroupPrefix)
	for _, it := range items {
		if err := y.Visit(s.t.Context(), it); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := y.Finish(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return true
}

// everything reads the items of the devices of the test, by the prefix of the
// partition.
func (s *stage) everything(prefix string) []table.Item {
	partitions := []string{prefix + groupOf(stageDevice)}
	if prefix == devicePartition {
		partitions = nil
		for n := range s.serial + 1 {
			partitions = append(partitions, fmt.Sprintf("%s%s/id%d", prefix, stageDevice, n))
		}
	}
	var all []table.Item
	for _, p := range partitions {
		items, err := table.QueryAll(s.t.Context(), s.durable, table.Query{Partition: p})
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, items...)
	}
	return all
}

// call runs a handler as its front would: again, if its function has crashed.
func (s *stage) call(handle func(context.Context) error) (crashed bool, err error) {
	for {
		err := handle(s.t.Context())
		if s.revive() {
			if s.functions {
				crashed = true
				continue
			}
			return true, err
		}
		return crashed, err
	}
}

// dial opens a connection; "" if that did not work.
func (s *stage) dial(path, token string) gateway.Conn {
	s.serial++
	id := gateway.Conn(fmt.Sprint("conn", s.serial))
	s.conns[id] = &stageConn{}
	e := gateway.ConnectEvent{
		Conn: id, Path: path, At: s.now, RemoteIP: netip.MustParseAddr("198.51.100.1"),
		Header: http.Header{"Authorization": {"Bearer " + token}},
	}
	res, err := s.relay.Connect(s.t.Context(), e)
	if s.revive() {
		return "" // neither front tries an upgrade again
	}
	if err != nil {
		s.t.Fatalf("failed to connect: %v", err)
	}
	if !res.Accepted() {
		s.t.Fatalf("refused: %d %s", res.Status, res.Body)
	}
	s.conns[id].open = true
	return id
}

// frame hands a frame to the relay. On our own server a handler that fails ends the
// connection. It reports whether the process died meanwhile.
func (s *stage) frame(c gateway.Conn, data string) (crashed bool) {
	e := gateway.FrameEvent{Conn: c, Data: []byte(data), Text: true, At: s.now}
	if s.functions {
		s.serial++
		e.ID = fmt.Sprint("frame", s.serial)
	}
	crashed, err := s.call(func(ctx context.Context) error {
		_, err := s.relay.Frame(ctx, e)
		return err
	})
	if err != nil && !errors.Is(err, errCrash) {
		s.t.Fatalf("failed to handle a frame: %v", err)
	}
	return crashed
}

// hangUp ends a connection from outside.
func (s *stage) hangUp(c gateway.Conn) {
	if x := s.conns[c]; !x.closed {
		x.closed = true
		s.ended = append(s.ended, c)
	}
}

// work does one thing that is due in the background; false if there is none.
func (s *stage) work() bool {
	if len(s.ended) > 0 {
		id := s.ended[0]
		s.ended = s.ended[1:]
		_, err := s.call(func(ctx context.Context) error { return s.relay.Disconnect(ctx, gateway.DisconnectEvent{Conn: id}) })
		if err != nil && !errors.Is(err, errCrash) {
			s.t.Fatalf("failed to disconnect: %v", err)
		}
		return true
	}
	i := slices.IndexFunc(s.jobs, func(j queue.Job) bool { return !j.At.After(s.now) })
	if i < 0 {
		return false
	}
	j := s.jobs[i]
	s.jobs = slices.Delete(s.jobs, i, i+1)
	j.Attempt++
	_, err := s.call(func(ctx context.Context) error { return s.relay.Job(ctx, j) })
	if err != nil && !errors.Is(err, errCrash) {
		if j.Attempt > 5 {
			s.t.Fatalf("job %s failed: %v", j.Kind, err)
		}
		j.At = s.now.Add(time.Second)
		s.jobs = append(s.jobs, j)
	}
	return true
}

// pass lets time pass until the next job is due; false if there is none.
func (s *stage) pass() bool {
	var next time.Time
	for _, j := range s.jobs {
		if next.IsZero() || j.At.Before(next) {
			next = j.At
		}
	}
	if next.IsZero() {
		return false
	}
	s.now = next
	return true
}

type stageTable struct {
	s *stage
	table.Table
}

func (t stageTable) Get(ctx context.Context, k table.Key) (it table.Item, err error) {
	if t.s.beforeGet != nil {
		t.s.beforeGet(k)
	}
	errOp := t.s.op(ctx, func() error { it, err = t.Table.Get(ctx, k); return err })
	return it, errOp
}

func (t stageTable) Query(ctx context.Context, q table.Query) (p table.Page, err error) {
	errOp := t.s.op(ctx, func() error { p, err = t.Table.Query(ctx, q); return err })
	return p, errOp
}

func (t stageTable) Write(ctx context.Context, op table.Op) (old table.Item, err error) {
	errOp := t.s.op(ctx, func() error { old, err = t.Table.Write(ctx, op); return err })
	return old, errOp
}

func (t stageTable) Transact(ctx context.Context, ops []table.Op) error {
	return t.s.op(ctx, func() error { return t.Table.Transact(ctx, ops) })
}

type stageQueue struct{ s *stage }

func (q stageQueue) Send(ctx context.Context, j queue.Job) error {
	return q.s.op(ctx, func() error { q.s.jobs = append(q.s.jobs, j); return nil })
}

type stagePusher struct{ s *stage }

func (p stagePusher) Send(ctx context.Context, n push.Notification) error {
	return p.s.op(ctx, func() error { p.s.pushes = append(p.s.pushes, n); return nil })
}

type stageFront struct{ s *stage }

func (f stageFront) Post(ctx context.Context, id gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	err := f.s.op(ctx, func() error {
		c := f.s.conns[id]
		if c == nil || c.closed || !c.open {
			return gateway.ErrGone
		}
		if !m.Text {
			return errors.New("a binary message")
		}
		c.inbox = append(c.inbox, string(m.Data))
		c.closed = len(c.inbox) == c.lasts
		return nil
	})
	return gateway.Sent, err
}

func (f stageFront) Close(ctx context.Context, id gateway.Conn, code gateway.CloseCode, _ string) error {
	return f.s.op(ctx, func() error {
		c := f.s.conns[id]
		if c == nil || c.closed || !c.open {
			return gateway.ErrGone
		}
		c.code = code
		f.s.hangUp(id)
		return nil
	})
}

func (f stageFront) Stat(ctx context.Context, id gateway.Conn) (gateway.Stat, error) {
	return gateway.Stat{}, f.s.op(ctx, func() error {
		if c := f.s.conns[id]; c == nil || c.closed {
			return gateway.ErrGone
		}
		return nil
	})
}

func (f stageFront) Gone(id gateway.Conn) bool {
	c := f.s.conns[id]
	return !f.s.functions && (c == nil || c.closed && !slices.Contains(f.s.ended, id))
}

// stored describes what is stored of a device, without what may stay.
func (s *stage) stored() (payloads, open int, u usage) {
	for _, it := range s.everything(devicePartition) {
		switch {
		case strings.HasPrefix(it.Key.Sort, payloadSort):
			payloads++
		case strings.HasPrefix(it.Key.Sort, openSort):
			open++
		case it.Key.Sort == countersSort:
			u = usageFrom(it.Attrs)
		}
	}
	return payloads, open, u
}
