package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/table"
)

// Options are what a relay is made of. All but ConnRecordTTL and Observer are
// required.
type Options struct {
	Table  table.Table
	Queue  queue.Queue
	Front  gateway.Front
	Pusher push.Sender
	Log    *slog.Logger
	// Now, Random and NewID are the sources of time, of secrets and of ids.
	Now    func() time.Time
	Random io.Reader
	NewID  func() string
	Limits Limits
	// ConnRecordTTL is after what time the record of a connection expires, for
	// fronts that may fail to report a disconnect; 0: never.
	ConnRecordTTL time.Duration
	// Distributed says that handlers run in many processes which share nothing but
	// the table, and that the frames of each connection wait in a queue, in their order,
	// some of them even after the connection has ended. Then the frames of a connection
	// wait for those of the connection that it has replaced, and the sweeper looks for
	// connections whose end was not reported. The answer of a handler may be lost, and
	// so a Connect may come again too.
	Distributed bool
	Observer    Observer
	// Locks is the number of locks for members, and of those for their lanes; 0 is
	// the default, many more than handlers run at a time. Handlers of two members that
	// share a lock wait for each other, which costs time and nothing else.
	Locks int
}

// Relay is the core. It is the gateway.Handler of a front and runs the jobs of
// its queue.
type Relay struct {
	table         table.Table
	queue         queue.Queue
	front         gateway.Front
	pusher        push.Sender
	log           *slog.Logger
	now           func() time.Time
	random        io.Reader
	newID         func() string
	connRecordTTL time.Duration
	distributed   bool
	observe       Observer
	dialects      []Dialect
	limits        atomic.Pointer[Limits]

	unsaved     unsaved
	memberLocks *locks // see Hold
	laneLocks   *locks // the innermost: a handler that holds one takes no other lock
}

var _ gateway.Handler = (*Relay)(nil)

const defaultLocks = 4096

// New makes a relay without dialects; see Use.
func New(o Options) *Relay {
	r := &Relay{
		table: o.Table, queue: o.Queue, front: o.Front, pusher: o.Pusher, log: o.Log,
		now: o.Now, random: o.Random, newID: o.NewID,
		connRecordTTL: o.ConnRecordTTL, distributed: o.Distributed, observe: o.Observer,
	}
	locks := cmp.Or(o.Locks, defaultLocks)
	r.memberLocks, r.laneLocks = newLocks(locks, o.Random), newLocks(locks, o.Random)
	if r.observe == nil {
		r.observe = nopObserver{}
	}
	r.limits.Store(&o.Limits)
	return r
}

// Use adds a dialect. It is called before the first event.
func (r *Relay) Use(d Dialect) { r.dialects = append(r.dialects, d) }

// Limits returns the limits in force.
func (r *Relay) Limits() Limits { return *r.limits.Load() }

// SetLimits puts new limits in force, at once.
func (r *Relay) SetLimits(l Limits) { r.limits.Store(&l) }

// Now is the time by the relay's clock.
func (r *Relay) Now() time.Time { return r.now() }

// NewID makes a fresh unique id.
func (r *Relay) NewID() string { return r.newID() }

// Random fills b with secret random bytes.
func (r *Relay) Random(b []byte) error {
	if _, err := io.ReadFull(r.random, b); err != nil {
		return fmt.Errorf("failed to read random bytes: %w", err)
	}
	return nil
}

// Front is the front that the connections of this relay belong to.
func (r *Relay) Front() gateway.Front { return r.front }

// Table is the storage, for what a dialect keeps of its own.
func (r *Relay) Table() table.Table { return r.table }

// Find reads an item and reports whether there is one. what names it in an error.
func (r *Relay) Find(ctx context.Context, k table.Key, what string) (table.Item, bool, error) {
	it, err := r.table.Get(ctx, k)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return table.Item{}, false, fmt.Errorf("failed to read %s: %w", what, err)
	}
	return it, err == nil, nil
}

// ConnRecordTTL is after what time the record of a connection expires; 0 is never, and
// says that the front reports every disconnect.
func (r *Relay) ConnRecordTTL() time.Duration { return r.connRecordTTL }

// Log is where the relay and its dialects log.
func (r *Relay) Log() *slog.Logger { return r.log }

// Observer is where events are counted.
func (r *Relay) Observer() Observer { return r.observe }

func (r *Relay) dialect(name string) Dialect {
	for _, d := range r.dialects {
		if d.Name() == name {
			return d
		}
	}
	return nil
}

func (r *Relay) dialectOfGroup(group string) Dialect {
	name, _, _ := strings.Cut(group, "/")
	return r.dialect(name)
}

// Serves reports whether some dialect answers at a path.
func (r *Relay) Serves(path string) bool { return r.byPath(path) != nil }

func (r *Relay) byPath(path string) Dialect {
	for _, d := range r.dialects {
		if d.Serves(path) {
			return d
		}
	}
	return nil
}

// ShortGroup is a group as it may be logged: eight digits of its name.
func ShortGroup(group string) string {
	name, id, ok := strings.Cut(group, "/")
	if !ok {
		return Short(group)
	}
	return name + "/" + Short(id)
}

// Short is a key as it may be logged: its first eight characters.
func Short(key string) string {
	if len(key) > 8 {
		return key[:8]
	}
	return key
}

// Refuse makes the answer that refuses an upgrade: an HTTP status, and a JSON body with
// a code and a message.
func Refuse(status int, code, message string, retryAfter time.Duration) gateway.ConnectResult {
	body := map[string]any{"error": code, "message": message}
	h := http.Header{"Content-Type": {"application/json"}}
	if retryAfter > 0 {
		body["retryable"] = true
		body["retry_after_ms"] = retryAfter.Milliseconds()
		h.Set("Retry-After", fmt.Sprint(int64((retryAfter+time.Second-1)/time.Second)))
	}
	b, err := json.Marshal(body)
	if err != nil {
		b = nil
	}
	return gateway.ConnectResult{Status: status, Header: h, Body: b}
}
