package bolt

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"blindpost/shared/table"
)

// Bounds of one commit, so that its first caller waits only a short time: a batch of this
// size takes about 10 ms.
const (
	maxBatchWrites = 2048
	maxBatchBytes  = 8 << 20
)

// run is the writer. It commits what is queued, batch after batch, and waits when the
// queue is empty.
func (t *Table) run() {
	defer close(t.done)
	var pending []*request
	for {
		if len(pending) == 0 {
			var open bool
			if pending, open = t.takeQueue(); !open {
				break
			}
			if len(pending) == 0 {
				<-t.wake
				continue
			}
		}
		if t.abandoned() {
			answer(pending, ErrClosed)
			pending = pending[:0]
			continue
		}
		n := batchLength(pending)
		t.commitBatch(pending[:n])
		pending = pending[n:]
	}
	t.ended.Store(true)
	if err := t.db.Close(); err != nil {
		t.closeErr = fmt.Errorf("failed to close the table: %w", err)
	}
}

// takeQueue takes the whole queue; open is false when the table is closed and the queue
// is empty.
func (t *Table) takeQueue() (pending []*request, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return nil, !t.closed
	}
	pending = t.queue
	clear(t.spare)
	t.queue, t.spare = t.spare[:0], pending
	return pending, true
}

func (t *Table) abandoned() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.abandon
}

// batchLength is how many of the pending requests go into one commit.
func batchLength(pending []*request) int {
	writes, size := 0, 0
	for i, r := range pending {
		writes += len(r.writes) + r.sweep
		size += r.size
		if i > 0 && (writes > maxBatchWrites || size > maxBatchBytes) {
			return i
		}
	}
	return len(pending)
}

// answer answers requests of which no commit has begun.
func answer(requests []*request, err error) {
	for _, r := range requests {
		if r.state.CompareAndSwap(stateQueued, stateTaken) {
			r.err = err
			r.done <- struct{}{}
		}
	}
}

// commitBatch carries out a batch in one transaction of the file and answers it. It skips
// requests that were withdrawn meanwhile.
func (t *Table) commitBatch(batch []*request) {
	taken := batch[:0]
	for _, r := range batch {
		if r.state.CompareAndSwap(stateQueued, stateTaken) {
			taken = append(taken, r)
		}
	}
	if len(taken) == 0 {
		return
	}
	if err := t.carryOut(taken); err != nil {
		err = fmt.Errorf("failed to commit: %w", err)
		for _, r := range taken {
			r.err, r.old, r.swept = err, nil, 0
		}
	}
	for _, r := range taken {
		r.done <- struct{}{}
	}
}

// carryOut returns an error if the whole batch failed. An error of one request is in its
// answer.
func (t *Table) carryOut(batch []*request) error {
	err := t.transact(batch)
	for key, enc := range t.touched {
		if err != nil {
			enc = nil
		}
		t.cache.settle(key, enc)
	}
	clear(t.touched)
	return err
}

func (t *Table) transact(batch []*request) error {
	if t.broken {
		return ErrBroken
	}
	tx, err := t.db.Begin(true)
	if err != nil {
		return err
	}
	b := buckets{items: tx.Bucket(bucketItems), expiry: tx.Bucket(bucketExpiry), cache: t.cache, touched: t.touched}
	// Expiries mostly grow, so its pages can be filled: they are rarely split again.
	b.expiry.FillPercent = 0.9
	for _, r := range batch {
		now := t.now()
		if r.sweep > 0 {
			if r.sweepAt.Before(now) {
				now = r.sweepAt
			}
			r.swept, err = b.sweep(now, r.sweep)
		} else {
			err = b.request(r, now)
		}
		if err != nil {
			return rollback(tx, err)
		}
	}
	if !b.dirty {
		return rollback(tx, nil)
	}
	if err := t.finish(tx); err != nil {
		return err
	}
	t.commits.Add(1)
	return nil
}

// rollback ends a transaction, unless it has ended already, and returns the reason.
func rollback(tx *bbolt.Tx, reason error) error {
	if err := tx.Rollback(); err != nil && reason == nil && !errors.Is(err, bolterrors.ErrTxClosed) {
		return err
	}
	return reason
}

// buckets are the buckets of the transaction of a batch.
type buckets struct {
	items, expiry *bbolt.Bucket
	cache         *cache
	touched       map[string][]byte // see Table
	dirty         bool
	scratch       []byte
}

// touch notes the new encoding of an item, nil for none.
func (b *buckets) touch(key, enc []byte) {
	b.dirty = true
	b.cache.block(key)
	b.touched[string(key)] = enc
}

// request carries out all writes of a request or none, and sets its answer. It returns
// an error only if the file failed; the batch must stop then.
func (b *buckets) request(r *request, now time.Time) error {
	// The writes have different keys, so all can be evaluated before the first is
	// stored.
	for i := range r.writes {
		w := &r.writes[i]
		w.stored = b.items.Get(w.key)
		if err := w.evaluate(now); err != nil {
			r.err = table.AtOp(err, i)
			return nil
		}
	}
	if r.wantOld {
		r.old = liveCopy(r.writes[0].stored, now)
	}
	for i := range r.writes {
		if err := b.store(&r.writes[i]); err != nil {
			return err
		}
	}
	return nil
}

// evaluate computes the new item of a write from the stored one.
func (w *write) evaluate(now time.Time) (err error) {
	if w.prepared.Action() == table.Check {
		return table.CheckEncoded(&w.prepared, w.stored, now)
	}
	w.next, err = table.ApplyEncoded(&w.prepared, w.stored, now, nil)
	return err
}

// store writes the outcome of a write and keeps the expiry index in step.
func (b *buckets) store(w *write) error {
	if w.prepared.Action() == table.Check || (w.stored == nil && len(w.next) == 0) {
		return nil
	}
	was, will := expiryOf(w.stored), expiryOf(w.next)
	b.touch(w.key, w.next)
	if len(w.next) == 0 {
		if err := b.items.Delete(w.key); err != nil {
			return err
		}
	} else if err := b.items.Put(w.key, w.next); err != nil {
		return err
	}
	if was.Equal(will) {
		return nil
	}
	if !was.IsZero() {
		b.scratch = appendExpiryKey(b.scratch[:0], was, w.key)
		if err := b.expiry.Delete(b.scratch); err != nil {
			return err
		}
	}
	if !will.IsZero() {
		b.scratch = appendExpiryKey(b.scratch[:0], will, w.key)
		return b.expiry.Put(b.scratch, nil) // Put copies the key
	}
	return nil
}

// expiryOf is the expiry of an encoding, the zero time for none. An encoding that cannot
// be decoded has no entry in the index.
func expiryOf(enc []byte) time.Time {
	expires, _ := table.DecodeExpires(enc) // zero with an error
	return expires
}

// liveCopy copies an encoding, or returns nil when the item is absent.
func liveCopy(enc []byte, now time.Time) []byte {
	if len(enc) == 0 || table.Expired(enc, now) {
		return nil
	}
	return append([]byte(nil), enc...)
}
