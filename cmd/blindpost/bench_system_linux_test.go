package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"blindpost/shared/proof/bench"
)

func TestUsageFrom(t *testing.T) {
	const rollup = `55d0b4a00000-7ffd0b5f6000 ---p 00000000 00:00 0                          [rollup]
Rss:               21240 kB
Pss:               20000 kB
Anonymous:         12345 kB
AnonHugePages:         0 kB
`
	got, ok := usageFrom([]byte(rollup))
	if want := (bench.Usage{Resident: 21240 << 10, Anonymous: 12345 << 10}); !ok || got != want {
		t.Errorf("got %+v, %v, want %+v", got, ok, want)
	}
	for _, bad := range []string{"", "Rss: 1 kB\n", "Rss: x kB\nAnonymous: 1 kB\n", "Rss:\nAnonymous:\n"} {
		if _, ok := usageFrom([]byte(bad)); ok {
			t.Errorf("%q can be read", bad)
		}
	}
}

func TestCPUFrom(t *testing.T) {
	const stat = "4711 (a) strange) name) S 1 4711 4711 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 9 0 12345"
	if got, ok := cpuFrom([]byte(stat)); !ok || got != 2*time.Second {
		t.Errorf("got %v, %v, want 2s", got, ok)
	}
	for _, bad := range []string{"", "1 (x) S 1", "1 x S 1 2 3 4 5 6 7 8 9 10 11 12 13", "1 (x) S 1 1 1 1 1 1 1 1 1 1 a b 1"} {
		if _, ok := cpuFrom([]byte(bad)); ok {
			t.Errorf("%q can be read", bad)
		}
	}
}

func TestProcessUsage(t *testing.T) {
	if u, ok := processUsage(os.Getpid()); !ok || u.Resident < 1<<20 || u.Anonymous > u.Resident {
		t.Errorf("this process uses %+v, %v", u, ok)
	}
	if _, ok := processUsage(-1); ok {
		t.Error("a process that is not there uses something")
	}
}

func TestRaiseFileLimit(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }()
	low := before
	low.Cur = before.Max / 2
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	if err := raiseFileLimit(before.Max); err != nil {
		t.Error(err)
	}
	var after syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &after); err != nil || after.Cur != before.Max {
		t.Errorf("the limit is %d, want %d (%v)", after.Cur, before.Max, err)
	}
	if before.Max < 1<<62 {
		if err := raiseFileLimit(before.Max + 1); err == nil {
			t.Error("more files than the system allows")
		}
	}
}

func TestInMemory(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err == nil && !inMemory("/dev/shm") {
		t.Error("/dev/shm is not in memory")
	}
	if inMemory("/does/not/exist") {
		t.Error("what is not there is in memory")
	}
}
