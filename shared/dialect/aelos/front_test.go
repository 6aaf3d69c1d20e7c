package aelos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// front is the front.
type front struct {
	mu    sync.Mutex
	conns map[gateway.Conn]*line
}

var _ gateway.Front = (*front)(nil)

func (f *front) add(l *line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[l.id] = l
}

func (f *front) line(c gateway.Conn) *line {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[c]
}

func (f *front) Post(_ context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	l := f.line(c)
	if l == nil {
		return 0, gateway.ErrGone
	}
	l.mu.Lock()
	posted := l.posted
	l.mu.Unlock()
	if posted != nil {
		posted(m)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed != nil:
		return 0, gateway.ErrGone
	case l.broken != nil:
		if l.arrives {
			m.Data = bytes.Clone(m.Data)
			l.in = append(l.in, m)
		}
		return 0, l.broken
	case l.mute:
		return gateway.Sent, nil
	case m.Droppable && l.slow:
		return gateway.Dropped, nil
	}
	m.Data = bytes.Clone(m.Data)
	l.in = append(l.in, m)
	return gateway.Sent, nil
}

func (f *front) Close(_ context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	l := f.line(c)
	if l == nil {
		return gateway.ErrGone
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed != nil:
		return gateway.ErrGone
	case l.stuck != nil:
		return l.stuck
	}
	l.closed = &closing{code, reason}
	return nil
}

func (f *front) Stat(_ context.Context, c gateway.Conn) (gateway.Stat, error) {
	l := f.line(c)
	if l == nil {
		return gateway.Stat{}, gateway.ErrGone
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != nil {
		return gateway.Stat{}, gateway.ErrGone
	}
	return gateway.Stat{}, nil
}

func (f *front) Gone(gateway.Conn) bool { return false }

// flaky is a table in which a write may fail, before or after it was done, as it
// looks to a process that dies.
type flaky struct {
	table.Table
	mu   sync.Mutex
	left int // writes until it fails; 0 never
	done bool
}

var errDied = errors.New("the process has died")

// dieAfter makes the n-th write from now fail, done or not; all that follow too,
// until alive is called.
func (f *flaky) dieAfter(n int, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.done = n, done
}

func (f *flaky) alive() { f.dieAfter(0, false) }

func (f *flaky) step() (do bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.left == 0:
		return true, nil
	case f.left > 1:
		f.left--
		return true, nil
	case f.left == 1:
		f.left = -1
		return f.done, errDied
	}
	return false, errDied
}

func (f *flaky) Write(ctx context.Context, op table.Op) (table.Item, error) {
	do, died := f.step()
	if !do {
		return table.Item{}, died
	}
	it, err := f.Table.Write(ctx, op)
	return it, errors.Join(err, died)
}

func (f *flaky) Transact(ctx context.Context, ops []table.Op) error {
	do, died := f.step()
	if !do {
		return died
	}
	return errors.Join(f.Table.Transact(ctx, ops), died)
}

// counts is the observer.
type counts struct {
	relay.Observer
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[fmt.Sprintf(format, args...)]++
}

func (c *counts) Refused(_, reason string)               { c.add("refused %s", reason) }
func (c *counts) Authenticated(_, role, result string)   { c.add("auth %s %s", role, result) }
func (c *counts) Joined(_, role string)                  { c.add("joined %s", role) }
func (c *counts) Left(_, role string)                    { c.add("left %s", role) }
func (c *counts) Frame(_, kind string, _ time.Duration)  { c.add("frame %s", kind) }
func (c *counts) Message(_ relay.Class, r relay.Result)  { c.add("message %s", r) }
func (c *counts) Dropped(_ relay.Class, r string, n int) { c.add("dropped %s", r) }

// wantDropped says how many frames must have been dropped for a reason.
func (w *world) wantDropped(reason string, n int) {
	w.t.Helper()
	w.count.mu.Lock()
	defer w.count.mu.Unlock()
	if got := w.count.n["dropped "+reason]; got != n {
		w.t.Errorf("dropped as %s: %d, want %d (%v)", reason, got, n, slices.Sorted(maps.Keys(w.count.n)))
	}
}

type book struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
