// Package bolt is a table in one file, on bbolt.
//
// It keeps the contract of package table, and in addition:
//
//   - One goroutine writes. What others ask for while a commit is under way is
//     gathered into the next one, so that many writers share the cost of
//     reaching the disk, and a lone writer never waits for company.
//   - Each operation is judged against the state that the earlier ones of its
//     batch have left; one that fails disturbs no other. All are answered after
//     the commit.
//   - A commit that fails (disk full, I/O error) is answered to everybody in it
//     with an error that is none of table's, and leaves the file as it was.
//     Later writes work again when the cause is gone. When only the very last
//     step fails, the confirmation that the disk has it, the batch waits up to 10 s
//     for a further commit that confirms it, and is then answered as done. Without
//     one the table is broken: see [Table.Failed].
//   - A context that ends before its operation's batch has begun takes the
//     operation back. After that the call waits for the answer, which is then
//     definite.
//   - A second process that opens the file gets an error that says so.
//
// Expired items are absent at once. Their space is given back by [Table.Sweep].
package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"blindpost/shared/table"
)

var _ table.Table = (*Table)(nil)

// ErrClosed is the answer of every call after Close.
var ErrClosed = errors.New("table is closed")

// Options adjust a table.
type Options struct {
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// LockTimeout is how long Open waits for another process to let go of the
	// file; 1 s if zero.
	LockTimeout time.Duration
	// CacheBytes is about how much memory hot items may take; 32 MB if zero,
	// none if negative.
	CacheBytes int
}

const (
	fileMode           = 0o600
	defaultLockTimeout = time.Second
	defaultCacheBytes  = 32 << 20

	// format is the version of what is in the file. Version 1: bucket "items"
	// with storage key to encoded item, bucket "expiry" with expiry key to
	// nothing.
	format = 1
)

var (
	bucketMeta   = []byte("meta")
	bucketItems  = []byte("items")
	bucketExpiry = []byte("expiry")
	keyFormat    = []byte("format")
)

// Table is a table in a file. Make one with Open.
type Table struct {
	// Set once.
	now   func() time.Time
	db    *bbolt.DB
	cache *cache        // nil: none
	wake  chan struct{} // 1 deep: the queue has something, or closed changed
	done  chan struct{} // closed when the writer has ended and the file is closed

	requests sync.Pool // of *request; not shared, as requests belong to a synctest bubble

	mu      sync.Mutex
	queue   []*request
	closed  bool
	abandon bool // answer what is queued with ErrClosed

	// Owned by the writer.
	spare    []*request        // the queue's other half
	touched  map[string][]byte // what the batch changes: storage key to new encoding
	closeErr error             // readable when done is closed
	broken   bool              // see doubt.go

	failed chan struct{} // closed by the writer when the table is broken

	ended   atomic.Bool           // the file is closed
	commit  func(*bbolt.Tx) error // (*bbolt.Tx).Commit, but for tests
	commits atomic.Int64
}

// Open opens the file, or creates it, readable by its owner only.
func Open(path string, o Options) (*Table, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = defaultLockTimeout
	}
	db, err := bbolt.Open(path, fileMode, &bbolt.Options{
		Timeout: o.LockTimeout,
		// The list of free pages is not written with each commit: it grows with
		// what was deleted, and would be most of what a commit writes after a
		// large sweep (with 70,000 free pages, a lone write took 2.9 ms instead
		// of 0.5). In exchange Open walks over all pages, 0.15 s for 300 MB.
		NoFreelistSync: true,
		// The map finds a run of free pages at once; the array searches.
		FreelistType: bbolt.FreelistMapType,
		// Statistics cost two locks for each read.
		NoStatistics: true,
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("failed to open %s: another process is using it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to open %s: %w", path, err)
	}
	if err := prepareFile(db); err != nil {
		return nil, errors.Join(fmt.Errorf("failed to open %s: %w", path, err), db.Close())
	}
	syncDirectory(path)
	t := &Table{
		now:     o.Now,
		db:      db,
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		failed:  make(chan struct{}),
		touched: make(map[string][]byte),
		commit:  (*bbolt.Tx).Commit,
	}
	switch {
	case o.CacheBytes == 0:
		t.cache = newCache(defaultCacheBytes)
	case o.CacheBytes > 0:
		t.cache = newCache(o.CacheBytes)
	}
	t.requests.New = func() any { return &request{done: make(chan struct{}, 1)} }
	go t.run()
	return t, nil
}

// syncDirectory makes a new file's name durable. Not every system can do that
// for a directory; those that cannot do not need it.
func syncDirectory(path string) {
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// prepareFile makes the buckets of a new file and refuses the file of a newer
// version.
func prepareFile(db *bbolt.DB) error {
	return db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(bucketMeta)
		if err != nil {
			return err
		}
		switch stored := meta.Get(keyFormat); {
		case stored == nil:
			if err := meta.Put(keyFormat, []byte{format}); err != nil {
				return err
			}
		case len(stored) != 1 || stored[0] != format:
			return errors.New("it was written by another version")
		}
		for _, name := range [][]byte{bucketItems, bucketExpiry} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close ends the table: it waits until what has been queued is committed, and
// closes the file. When ctx ends first, operations that no commit has begun are
// answered with ErrClosed. In any case the file is closed when Close returns.
func (t *Table) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.signal()
	select {
	case <-t.done:
		return t.closeErr
	case <-ctx.Done():
	}
	t.mu.Lock()
	t.abandon = true
	t.mu.Unlock()
	t.signal()
	<-t.done
	if t.closeErr != nil {
		return t.closeErr
	}
	return fmt.Errorf("failed to finish all writes: %w", ctx.Err())
}

// signal wakes the writer; one signal stands for many.
func (t *Table) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// separator stands between partition and sort key. It is no part of either, as
// keys have no control characters, and less than all that are; the order of
// storage keys within a partition is therefore that of the sort keys.
const separator = 0

func appendStorageKey(dst []byte, k table.Key) []byte {
	dst = append(dst, k.Partition...)
	dst = append(dst, separator)
	return append(dst, k.Sort...)
}

// The expiry bucket is the index of expiring items in the order in which they
// expire: its keys are the expiry in seconds, 8 bytes big-endian, and the
// storage key. It changes in the transaction that changes the item.
const expiryKeyPrefix = 8

func appendExpiryKey(dst []byte, expires time.Time, storageKey []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(expires.Unix()))
	return append(dst, storageKey...)
}
