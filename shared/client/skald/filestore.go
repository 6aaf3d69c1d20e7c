package skald

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// maxStateFile is the largest state file in bytes: about 40,000 peers.
const maxStateFile = 16 << 20

// FileStore keeps a [State] in one file, readable by its owner only. A save
// writes a second file beside it, syncs it, renames it over the first and syncs
// the directory, so that a crash leaves the old state or the new one.
//
// While it is open, a lock file beside it excludes other processes: two processes with one
// state would use a nonce twice. For the same reason an old copy of the file must not be
// restored.
type FileStore struct {
	path string
	lock *os.File

	mu     sync.Mutex
	closed bool

	// before is called before each step of a save; tests make it fail.
	before func(step string) error
}

var _ Store = (*FileStore)(nil)

// OpenFileStore opens the state file at path, which need not exist yet, and creates its
// directory if necessary. [ErrLocked] says that it is already open, here or in another
// process.
func OpenFileStore(path string) (*FileStore, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("failed to make state directory: %w", err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("failed to open state lock: %w", err)
	}
	if err := lockFile(lock); err != nil {
		lock.Close()
		return nil, fmt.Errorf("failed to lock state: %w", err)
	}
	return &FileStore{
		path:   path,
		lock:   lock,
		before: func(string) error { return nil },
	}, nil
}

// Close releases the lock. It keeps the lock file: if it were removed, two processes could
// each hold a lock.
func (f *FileStore) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if err := f.lock.Close(); err != nil {
		return fmt.Errorf("failed to unlock state: %w", err)
	}
	return nil
}

// Load implements [Store]. A file that others can read, or that does not parse,
// is [ErrState].
func (f *FileStore) Load() (State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return State{}, fmt.Errorf("failed to load state: %w", fs.ErrClosed)
	}
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, ErrNoState
	}
	if err != nil {
		return State{}, fmt.Errorf("failed to load state: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return State{}, fmt.Errorf("failed to load state: %w", err)
	}
	if !privateMode(info.Mode()) {
		return State{}, fmt.Errorf("%w: mode %v lets others read it, want 0600", ErrState, info.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(file, maxStateFile+1))
	if err != nil {
		return State{}, fmt.Errorf("failed to load state: %w", err)
	}
	if len(b) > maxStateFile {
		return State{}, fmt.Errorf("%w: more than %d bytes", ErrState, maxStateFile)
	}
	return decodeState(b)
}

// Save implements [Store].
func (f *FileStore) Save(s State) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("failed to save state: %w", fs.ErrClosed)
	}
	b, err := encodeState(s)
	if err != nil {
		return err
	}
	if err := f.replace(b); err != nil {
		return fmt.Errorf("failed to save state: %w", err)
	}
	return nil
}

func (f *FileStore) replace(content []byte) error {
	temp := f.path + ".new"
	// A crash may have left the file. It is removed, not truncated, so that the new file
	// has our mode and is not a link.
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.before("create"); err != nil {
		return err
	}
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.fill(file, content); err != nil {
		file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := f.before("rename"); err != nil {
		return err
	}
	if err := os.Rename(temp, f.path); err != nil {
		return err
	}
	if err := f.before("sync directory"); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.path))
}

func (f *FileStore) fill(file *os.File, content []byte) error {
	if err := f.before("write"); err != nil {
		return err
	}
	if _, err := file.Write(content); err != nil {
		return err
	}
	if err := f.before("sync"); err != nil {
		return err
	}
	return file.Sync()
}
