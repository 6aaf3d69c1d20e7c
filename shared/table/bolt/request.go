package bolt

import (
	"context"
	"sync/atomic"
	"time"

	"blindpost/shared/table"
)

// request is a request of a caller to the writer. The caller fills it and waits for
// done; in between it belongs to the writer.
type request struct {
	writes  []write
	size    int       // bytes to be written, roughly
	wantOld bool      // keep the old item of the only write
	sweep   int       // remove up to this many expired items
	sweepAt time.Time // by this clock

	state atomic.Int32
	done  chan struct{} // 1 deep

	// The answer.
	err   error
	old   []byte // encoded, a copy
	swept int
}

// write is one operation of a request.
type write struct {
	prepared table.Prepared
	key      []byte // storage key
	stored   []byte // encoding found in the file; valid until the transaction writes
	next     []byte // encoding to store, nil to delete
}

// States of a request. Only a queued request can be taken or withdrawn.
const (
	stateQueued int32 = iota
	stateTaken
	stateWithdrawn
)

func (t *Table) newRequest() *request { return t.requests.Get().(*request) }

// release gives a request back to the pool, without the caller's values.
func (t *Table) release(r *request) {
	clear(r.writes)
	*r = request{writes: r.writes[:0], done: r.done}
	t.requests.Put(r)
}

func (r *request) add(op *table.Op) {
	key := make([]byte, 0, len(op.Key.Partition)+1+len(op.Key.Sort))
	key = appendStorageKey(key, op.Key)
	r.writes = append(r.writes, write{prepared: table.Prepare(*op), key: key})
	r.size += len(key) + table.Size(op.Key, op.Set)
}

// submit queues a request and waits for its answer. If it returns false, the request was
// not carried out for the reason err, and the caller must not use it any more.
func (t *Table) submit(ctx context.Context, r *request) (answered bool, err error) {
	if err := ctx.Err(); err != nil {
		t.release(r)
		return false, err
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		t.release(r)
		return false, ErrClosed
	}
	t.queue = append(t.queue, r)
	first := len(t.queue) == 1
	t.mu.Unlock()
	if first {
		t.signal()
	}
	select {
	case <-r.done:
		return true, r.err
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(stateQueued, stateWithdrawn) {
		// The queue still has it; the writer drops it when it gets there.
		return false, ctx.Err()
	}
	<-r.done
	return true, r.err
}

// Write implements table.Table.
func (t *Table) Write(ctx context.Context, op table.Op) (table.Item, error) {
	if err := table.ValidateWrite(op); err != nil {
		return table.Item{}, err
	}
	r := t.newRequest()
	r.add(&op)
	r.wantOld = true
	answered, err := t.submit(ctx, r)
	if !answered {
		return table.Item{}, err
	}
	old := r.old
	t.release(r)
	if err != nil || old == nil {
		return table.Item{}, err
	}
	return table.DecodeItem(op.Key, old)
}

// Transact implements table.Table.
func (t *Table) Transact(ctx context.Context, ops []table.Op) error {
	if err := table.ValidateTransaction(ops); err != nil {
		return err
	}
	if len(ops) == 0 {
		return ctx.Err()
	}
	r := t.newRequest()
	for i := range ops {
		r.add(&ops[i])
	}
	answered, err := t.submit(ctx, r)
	if answered {
		t.release(r)
	}
	return err
}

// Sweep removes the items that are expired both at now and by the table's own clock, the
// oldest first, in transactions of at most limit, until none is left. Other writes run
// in between; a smaller limit makes them wait less, as an item costs 20 to 40 µs. It
// returns how many it removed.
func (t *Table) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	if limit < 1 {
		limit = defaultSweep
	}
	total := 0
	for {
		r := t.newRequest()
		r.sweep, r.sweepAt = limit, now
		answered, err := t.submit(ctx, r)
		if !answered {
			return total, err
		}
		swept := r.swept
		t.release(r)
		if err != nil {
			return total, err
		}
		total += swept
		if swept < limit {
			return total, nil
		}
	}
}

// defaultSweep is the limit of a sweep that has none.
const defaultSweep = 200
