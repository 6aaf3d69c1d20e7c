package engine

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// FirstSeed is the first seed of the schedules of a test: START, or one from the clock,
// so that nobody has run them before. The Makefile takes START from the clock too: go
// test knows a result by the environment that a test has read, and would otherwise
// show an old one.
func FirstSeed(t testing.TB) uint64 {
	t.Helper()
	start := Env("START", uint64(time.Now().Unix())*1000)
	t.Logf("seeds from %d on", start)
	return start
}

// Env is a number in the environment.
func Env(name string, otherwise uint64) uint64 {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}
