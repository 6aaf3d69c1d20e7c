package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hold stands between a relay and its disk: each system call of the relay that
// changes a file or waits for the disk is held up until we say what becomes of
// it. It is carried out late, or not at all and answered with an error. The relay
// is the same binary as ever: the kernel does this (seccomp user notification,
// Linux 5.5), for a process that asks for it, without any privilege.
type hold struct {
	binary string

	mu      sync.Mutex
	rule    rule
	waiting *os.File // our end of the socket to a relay that starts

	held   atomic.Int64 // calls that were delayed
	failed atomic.Int64 // calls that were answered with an error
}

// rule says what becomes of a call; the zero value lets it pass.
type rule func(call uintptr) (time.Duration, syscall.Errno)

// The calls that are held.
var (
	syncCalls  = []uintptr{unix.SYS_FDATASYNC, unix.SYS_FSYNC}
	writeCalls = []uintptr{unix.SYS_PWRITE64, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE}
)

func isSync(call uintptr) bool { return call == syncCalls[0] || call == syncCalls[1] }

// slow delays each wait for the disk by a random time.
func slow(least, most time.Duration) rule {
	return func(call uintptr) (time.Duration, syscall.Errno) {
		if !isSync(call) {
			return 0, 0
		}
		return least + rand.N(most-least+1), 0
	}
}

// full answers what would take space as a full disk does.
func full(call uintptr) (time.Duration, syscall.Errno) {
	if isSync(call) {
		return 0, 0
	}
	return 0, syscall.ENOSPC
}

// broken fails a share of the waits for the disk, by chance. A commit has two; if
// the second fails, the commit may be there in spite of the error.
func broken(share float64) rule {
	return func(call uintptr) (time.Duration, syscall.Errno) {
		if isSync(call) && rand.Float64() < share {
			return 0, syscall.EIO
		}
		return 0, 0
	}
}

// set puts a rule in force; nil is none.
func (h *hold) set(r rule) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rule = r
}

// apply has the relay run under the hold from its next start.
func (h *hold) apply(r *relay) {
	r.command, r.started = h.command, h.started
}

// envHeld, in the environment of this test binary, names what it shall become.
const envHeld = "CHAOS_HELD"

func (h *hold) command(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	p := exec.Command(exe, args...)
	p.Env = append(os.Environ(), envHeld+"="+h.binary)
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		p.Err = fmt.Errorf("failed to make a socket: %w", err)
		return p
	}
	h.waiting = os.NewFile(uintptr(ends[0]), "hold")
	p.ExtraFiles = []*os.File{os.NewFile(uintptr(ends[1]), "held")}
	return p
}

// started takes the hold over from the process that has just been started.
func (h *hold) started(p *exec.Cmd) error {
	_ = p.ExtraFiles[0].Close()
	waiting := h.waiting
	defer waiting.Close()
	conn, err := net.FileConn(waiting)
	if err != nil {
		return fmt.Errorf("failed to use the socket: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), oob)
	if err != nil || n == 0 {
		return errors.Join(errNoHold, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return errors.Join(errNoHold, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return errors.Join(errNoHold, err)
	}
	go h.serve(fds[0])
	return nil
}

var errNoHold = errors.New("this system does not let a process be held")

// notification and response are struct seccomp_notif and seccomp_notif_resp.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// serve decides about calls until the process has ended.
func (h *hold) serve(fd int) {
	var deciding sync.WaitGroup
	defer func() {
		deciding.Wait()
		_ = unix.Close(fd)
	}()
	for {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(polled, -1); err != nil {
			if err == unix.EINTR {
				continue
			}
			return
		}
		if polled[0].Revents&unix.POLLIN == 0 {
			return // nobody is left who could call
		}
		var n notification
		if errno := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errno != 0 {
			continue // the caller was killed meanwhile
		}
		deciding.Go(func() { h.decide(fd, n) })
	}
}

func (h *hold) decide(fd int, n notification) {
	h.mu.Lock()
	r := h.rule
	h.mu.Unlock()
	out := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if r != nil {
		delay, errno := r(uintptr(n.nr))
		if delay > 0 {
			h.held.Add(1)
			time.Sleep(delay)
		}
		if errno != 0 {
			h.failed.Add(1)
			out.errno, out.flags = -int32(errno), 0
		}
	}
	_ = ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&out)) // the caller may be gone
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	return errno
}

// runHeld turns this process into a held relay, if the environment asks for it.
func runHeld() bool {
	binary := os.Getenv(envHeld)
	if binary == "" {
		return false
	}
	runtime.LockOSThread() // the filter is for this thread and what it becomes
	if err := askToBeHeld(3); err != nil {
		fmt.Fprintf(os.Stderr, "failed to be held: %v\n", err)
		os.Exit(3)
	}
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, envHeld+"=") {
			env = append(env, kv)
		}
	}
	err := syscall.Exec(binary, append([]string{binary}, os.Args[1:]...), env)
	fmt.Fprintf(os.Stderr, "failed to become %s: %v\n", binary, err)
	os.Exit(3)
	return true
}

// askToBeHeld installs the filter and sends what controls it through a socket.
func askToBeHeld(socket int) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("failed to give up privileges: %w", err)
	}
	filter := seccompFilter()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("failed to install the filter: %w", errno)
	}
	defer unix.Close(int(fd))
	defer unix.Close(socket)
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(int(fd)), nil, 0); err != nil {
		return fmt.Errorf("failed to hand over control: %w", err)
	}
	return nil
}

// seccompFilter lets every call pass but those that are held.
func seccompFilter() []unix.SockFilter {
	const offsetOfCall = 0 // in struct seccomp_data
	calls := append(append([]uintptr(nil), syncCalls...), writeCalls...)
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offsetOfCall}}
	for i, call := range calls {
		filter = append(filter, unix.SockFilter{
			Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(call), Jt: uint8(len(calls) - i),
		})
	}
	return append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
}
