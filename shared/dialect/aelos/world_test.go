package aelos

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/queue/local"
	"blindpost/shared/relay"
	"blindpost/shared/table/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secretA = "0123456789abcdef0123456789abcdef"
	secretB = "another secret of thirty-two byte"
	secretX = "one that the relay has not heard of"
)

// world is the dialect on the real core, in a synctest bubble, with a front whose
// peers are the test. It may have several processes that share only the table.
type world struct {
	t     *testing.T
	table *flaky
	jobs  *local.Queue
	front *front
	nodes []*node
	log   *book
	count *counts

	mu  sync.Mutex
	ids int
}

// node is one process.
type node struct {
	core *relay.Relay
	d    *Dialect
}

type worldOptions struct {
	nodes  int
	ttl    time.Duration // of connection records; > 0 is the functions' way
	limits func(*Limits)
	path   string
	ctl    Controller
	idle   bool // jobs are lost
}

// story runs a test in a bubble, in one process.
func story(t *testing.T, tell func(w *world), change ...func(*worldOptions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := worldOptions{nodes: 1}
		for _, f := range change {
			f(&o)
		}
		w := &world{t: t, front: &front{conns: map[gateway.Conn]*line{}}, log: &book{}, count: &counts{n: map[string]int{}}}
		w.table = &flaky{Table: mem.New(time.Now)}
		w.jobs = local.New(local.Options{Handler: func(ctx context.Context, j queue.Job) error {
			if o.idle {
				return nil
			}
			return w.nodes[w.next()%len(w.nodes)].core.Job(ctx, j)
		}})
		log := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		for range o.nodes {
			core := relay.New(relay.Options{
				Table: w.table, Queue: w.jobs, Front: w.front, Pusher: push.NewLogSender(log), Log: log,
				Now: time.Now, Random: rand.Reader, NewID: func() string { return "id" + strconv.Itoa(w.next()) },
				ConnRecordTTL: o.ttl, Observer: w.count,
			})
			limits := DefaultLimits()
			if o.limits != nil {
				o.limits(&limits)
			}
			d := New(core, Options{
				Limits: limits, Path: o.path, Controller: o.ctl,
				Secrets: func(context.Context) ([]string, error) { return []string{secretA, secretB}, nil },
			})
			core.Use(d)
			w.nodes = append(w.nodes, &node{core, d})
		}
		tell(w)
		synctest.Wait()
		if err := w.jobs.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for _, secret := range []string{secretA, secretB, "eyJ", "ciphertext"} {
			if strings.Contains(w.log.String(), secret) {
				t.Errorf("the log holds %q:\n%s", secret, w.log)
			}
		}
	})
}

// functions makes the world one of functions: several processes, and a front that may
// fail to report the end of a connection.
func functions(o *worldOptions) { o.nodes, o.ttl = 3, 2*time.Hour+10*time.Minute }

func (w *world) next() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return w.ids
}

func (w *world) roster(org, boat string) *roster {
	w.t.Helper()
	r, err := w.nodes[0].d.load(context.Background(), groupOf(org, boat))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}
