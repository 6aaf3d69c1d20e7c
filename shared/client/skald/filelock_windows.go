package skald

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes a lock that ends with the file's handle, so that a crash
// leaves none behind.
func lockFile(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return fmt.Errorf("%w: %s", ErrLocked, f.Name())
	}
	return err
}

// syncDir does nothing: directories cannot be synced on Windows.
func syncDir(string) error { return nil }

// privateMode cannot tell: access lists are not in the mode.
func privateMode(fs.FileMode) bool { return true }
