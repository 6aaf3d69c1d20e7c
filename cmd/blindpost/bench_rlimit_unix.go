//go:build linux || darwin

package main

import (
	"fmt"
	"syscall"
)

// raiseFileLimit lets this process, and those that it starts, have n files open.
func raiseFileLimit(n uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("failed to read the limit of open files: %w", err)
	}
	if l.Cur >= n {
		return nil
	}
	if l.Max < n {
		return fmt.Errorf("this needs %d open files in one process and the system allows %d: raise the hard limit (ulimit -Hn %d)", n, l.Max, n)
	}
	l.Cur = n
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("failed to raise the limit of open files to %d: %w", n, err)
	}
	return nil
}
