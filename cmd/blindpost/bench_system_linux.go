package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"blindpost/shared/proof/bench"
)

// clockTick is the unit of processor times in /proc, on every Linux.
const clockTick = 10 * time.Millisecond

// processUsage reads what a process uses from /proc.
func processUsage(pid int) (bench.Usage, bool) {
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return bench.Usage{}, false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return bench.Usage{}, false
	}
	u, ok := usageFrom(rollup)
	cpu, okCPU := cpuFrom(stat)
	u.CPU = cpu
	return u, ok && okCPU
}

// usageFrom reads /proc/PID/smaps_rollup: lines such as "Rss:   1234 kB".
func usageFrom(rollup []byte) (u bench.Usage, ok bool) {
	wanted := map[string]*int64{"Rss:": &u.Resident, "Anonymous:": &u.Anonymous}
	found := 0
	for line := range bytes.Lines(rollup) {
		f := bytes.Fields(line)
		if len(f) != 3 || string(f[2]) != "kB" {
			continue
		}
		n, err := strconv.ParseInt(string(f[1]), 10, 64)
		if to := wanted[string(f[0])]; to != nil && err == nil {
			*to = n << 10
			found++
		}
	}
	return u, found == 2
}

// cpuFrom reads user and system time from /proc/PID/stat: the 14th and 15th
// field, counted behind the name, which may hold anything.
func cpuFrom(stat []byte) (time.Duration, bool) {
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return 0, false
	}
	f := bytes.Fields(stat[i+1:])
	if len(f) < 13 {
		return 0, false
	}
	user, errUser := strconv.ParseInt(string(f[11]), 10, 64)
	system, errSystem := strconv.ParseInt(string(f[12]), 10, 64)
	if errUser != nil || errSystem != nil {
		return 0, false
	}
	return time.Duration(user+system) * clockTick, true
}

// dieWithParent has the kernel kill the child when this process dies, even if it
// is killed itself.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// File systems that live in memory.
const (
	magicTmpfs = 0x01021994
	magicRamfs = 0x858458f6
)

// inMemory reports whether a folder is on a file system that is not on a disk.
func inMemory(dir string) bool {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return false
	}
	return uint32(s.Type) == magicTmpfs || uint32(s.Type) == magicRamfs
}
