// Package bolt is a table in one file, on bbolt.
//
// It keeps the contract of package table, and in addition:
//
//   - One goroutine writes. It commits the requests that arrive during a commit
//     together in the next one, so that many writers share the cost of a disk write,
//     and a single writer never waits for others.
//   - Each operation sees the state that the earlier operations of its batch left. A
//     failed operation does not affect the others. All are answered after the commit.
//   - If a commit fails (disk full, I/O error), all its callers get an error that is
//     none of table's, and the file is unchanged. Later writes work again when the cause
//     is gone. If only the last step fails, the sync of the state page, the batch waits
//     up to 10 s for a further commit that confirms it, and is then answered as done.
//     Without one the table is broken: see [Table.Failed].
//   - A context that ends before its operation's batch begins withdraws the operation.
//     After that the call waits for the answer, which is then definite.
//   - A second process that opens the file gets an error that says so.
//
// Expired items are absent at once. [Table.Sweep] frees their space.
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
	// LockTimeout is how long Open waits for another process to release the file; 1 s if
	// zero.
	LockTimeout time.Duration
	// CacheBytes is about how much memory the cache may use; 32 MB if zero, none if
	// negative.
	CacheBytes int
}

const (
	fileMode           = 0o600
	defaultLockTimeout = time.Second
	defaultCacheBytes  = 32 << 20

	// format is the version of the file format. Version 1: bucket "items" maps storage
	// keys to encoded items, bucket "expiry" has expiry keys with empty values.
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
		// A commit does not write the list of free pages: after a large sweep the list
		// would be most of what a commit writes (with 70,000 free pages, a single write
		// took 2.9 ms instead of 0.5). In exchange Open reads all pages, 0.15 s for 300 MB.
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

// syncDirectory makes the name of a new file durable. Systems that cannot sync a
// directory do not need it.
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

// Close ends the table: it waits until all queued operations are committed, and closes
// the file. If ctx ends first, it answers the operations of which no commit has begun
// with ErrClosed. In any case the file is closed when Close returns.
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

// separator is between partition and sort key. As keys have no control characters, it
// occurs in neither and is less than all their characters. So storage keys of a
// partition have the order of the sort keys.
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
