//go:build unix

package chaos

import (
	"syscall"
	"testing"
)

// needFiles fails the test at once if the process may not open so many files.
func needFiles(t *testing.T, n int) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) < uint64(n) {
		t.Fatalf("this needs %d open files; the limit is %d (ulimit -n), %v", n, limit.Cur, err)
	}
}
