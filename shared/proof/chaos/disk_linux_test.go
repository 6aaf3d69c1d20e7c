package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blindpost/shared/gateway"

	"github.com/gobwas/ws"
)

// hoarder fills the mailboxes of phones that are away with large messages.
type hoarder struct {
	s     *stage
	home  *home
	agent *peer
	next  int
}

// errNoRoom says that the mailboxes of the phones are full, not the disk.
var errNoRoom = errors.New("all mailboxes are full")

// hoard stores messages until the relay fails to.
func (h *hoarder) hoard(most int) (stored int, err error) {
	if h.agent, err = h.s.enter(h.s.t.Context(), h.home.agent, way{}); err != nil {
		return 0, err
	}
	defer h.agent.abort()
	refusedBefore := 0
	for range most {
		phone := h.home.phones[h.next%len(h.home.phones)]
		h.next++
		l := h.s.book.write(h.home.agent.id, phone.id, false)
		if err := h.agent.post(60<<10, l); err != nil {
			<-h.agent.done
			return stored, h.agent.err
		}
		refused, err := h.agent.barrier()
		if err != nil {
			return stored, err
		}
		if refused > refusedBefore {
			return stored, errNoRoom
		}
		h.s.book.accept(l)
		stored++
	}
	return stored, nil
}

// collect lets the phones take what is theirs.
func (h *hoarder) collect() {
	h.s.t.Helper()
	for _, phone := range h.home.phones {
		p := h.s.mustEnter(phone, way{})
		h.s.eventually("a phone gets what was stored", func() bool { return h.s.book.arrivedAt(phone.id) })
		if _, err := p.barrier(); err != nil {
			h.s.t.Errorf("%s: %v", phone, err)
		}
		p.leave()
	}
}

// The disk is full. Senders are told: their connection is closed with 1011, and the
// log says why. What flows without the disk goes on. When there is space again,
// everything works again, without a restart, and nothing is lost, also when the
// relay has crashed meanwhile.
func playFullDisk(t *testing.T, u *run) {
	began := time.Now()
	d := newDisk(t)
	s := u.stage(t, d.folder)
	fill, free := d.fill, d.free
	if d.refused != nil {
		h := &hold{binary: u.binary}
		h.apply(s.relay)
		fill, free = func() { h.set(full) }, func() { h.set(nil) }
	}
	s.relay.serve()
	homes := s.settle(4, 2)
	greedy := &hoarder{s: s, home: s.settle(1, 3)[0]}
	live := s.converse(s.settle(1, 1)[0])
	live()

	var isFull atomic.Bool
	c := s.gather(homes, habits{
		size: 4 << 10, pause: 10 * time.Millisecond, leaving: 0.01, away: 200 * time.Millisecond, liveOnes: 0.2,
		failing: isFull.Load,
	}, u.seed)
	s.eventually("messages arrive", func() bool { return s.book.arrivals.Load() > 100 })

	ready := 0
	hoarded := 0
	rounds := budget(2, 6)
	for round := range rounds {
		n, err := greedy.hoard(40)
		if err != nil {
			t.Fatalf("failed to store messages: %v", err)
		}
		hoarded += n
		isFull.Store(true)
		fill()
		n, err = greedy.hoard(1000)
		hoarded += n
		if !closedWith(err, ws.StatusCode(gateway.CloseInternal)) {
			t.Fatalf("after %d messages of 60 KB on a full disk: %v, instead of being closed with 1011", n, err)
		}
		live() // needs no disk
		if s.relay.ready() == http.StatusOK {
			ready++
		}
		time.Sleep(budget(200*time.Millisecond, time.Second))
		if round == rounds-1 {
			// The last time, the relay crashes on top of it.
			s.relay.kill()
			free()
			s.relay.serve()
		} else {
			free()
		}
		arrived := s.book.arrivals.Load()
		s.eventually("messages arrive again", func() bool { return s.book.arrivals.Load() > arrived+50 })
		s.eventually("everybody is back", c.allHere)
		s.eventually("the relay is ready again", func() bool { return s.relay.ready() == http.StatusOK })
		isFull.Store(false)
		greedy.collect()
	}
	c.hush()
	sum := s.wantAllArrived()
	s.wantEmptyMailboxes(c, homes)
	s.wantGauge()
	s.relay.stop()
	if s.relay.logged("no space left on device") == 0 {
		t.Error("the log does not say that the disk is full")
	}
	report("full disk", began, "%s, full %d times under load, the last time with a kill; closed with 1011, live messages go on; /readyz 200 meanwhile in %d of %d; %d messages sent, %d accepted (%d MB in mailboxes), %d arrived, 0 lost, %d came again",
		d, rounds, ready, rounds, sum.sent, sum.accepted, hoarded*60/1024, sum.arrived, sum.repeated)
}

// disk is a file system of its own, if the system lets us mount one; otherwise just
// a folder.
type disk struct {
	t       *testing.T
	folder  string
	refused error // of the mount
}

// newDisk mounts one of 24 MB and unmounts it again at once: it lives on through a
// file descriptor, and so ends with this process, however that ends.
func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, folder: t.TempDir()}
	if d.refused = syscall.Mount("chaos", d.folder, "tmpfs", 0, "size=24m,mode=700"); d.refused != nil {
		return d
	}
	root, err := os.Open(d.folder)
	if err := errors.Join(err, syscall.Unmount(d.folder, syscall.MNT_DETACH)); err != nil {
		t.Fatalf("failed to use the small disk: %v", err)
	}
	t.Cleanup(func() { _ = root.Close() })
	d.folder = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), root.Fd())
	return d
}

func (d *disk) String() string {
	if d.refused != nil {
		return fmt.Sprintf("writes fail with ENOSPC (%v to mount a small disk)", d.refused)
	}
	return "tmpfs of 24 MB"
}

func (d *disk) filler() string { return filepath.Join(d.folder, "filler") }

func (d *disk) fill() {
	d.t.Helper()
	fillUp(d.t, d.filler())
}

func (d *disk) free() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Errorf("failed to give the space back: %v", err)
	}
}

// fillUp writes until there is not a page left.
func fillUp(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatalf("failed to fill the disk: %v", err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4 << 10} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("failed to fill the disk: %v", err)
	}
}

// The disk is slow: each wait for it takes tens of milliseconds, two in a commit, and
// once it takes seconds.
// Stored messages take as long, but share the waits; live ones do not wait; nobody
// is cut off. Then it fails for a while, then it has no space at all, each time
// with a crash on top.
func playBadDisk(t *testing.T, u *run) {
	began := time.Now()
	s := u.stage(t, t.TempDir())
	h := &hold{binary: u.binary}
	h.apply(s.relay)
	s.relay.serve()
	homes := s.settle(budget(6, 10), 2)
	probe := s.probe(s.settle(1, 2)[0])

	var fails atomic.Bool
	c := s.gather(homes, habits{
		size: 600, pause: 2 * time.Millisecond, leaving: 0.01, away: 300 * time.Millisecond, liveOnes: 0.2,
		failing: fails.Load,
	}, u.seed)
	s.eventually("everybody is there", c.allHere)

	const least, most = 10 * time.Millisecond, 40 * time.Millisecond
	hang := budget(2*time.Second, 5*time.Second)
	before, _ := s.book.audit()
	slowSince := time.Now()
	h.set(slow(least, most))
	time.Sleep(budget(1500*time.Millisecond, 8*time.Second))
	h.set(slow(hang, hang))
	time.Sleep(hang / 2)
	h.set(slow(least, most))
	time.Sleep(budget(2*time.Second, 8*time.Second))
	after, _ := s.book.audit()
	took, waits, accepted := time.Since(slowSince), h.held.Load(), after.accepted-before.accepted
	live, login := probe.end()
	if n := s.relay.peek()[`blindpost_closes_total{code="1011"}`]; n != 0 {
		t.Errorf("%v connections were closed with 1011 on a slow disk", n)
	}
	s.relay.kill() // while it waits for the disk
	s.relay.serve()
	s.eventually("everybody is back", c.allHere)
	h.set(nil)
	s.relay.wantNoErrors()
	if accepted < int(waits)/2 {
		t.Errorf("only %d messages were accepted in %d waits for the disk, two a commit: they do not share them", accepted, waits)
	}
	report("slow disk", began, "%d waits of %v to %v and one of %v, a kill in the middle; %d messages accepted, %.1f a commit, %.0f/s; bystanders: live %v, login %v",
		waits, least, most, hang, accepted, 2*float64(accepted)/float64(waits), float64(accepted)/took.Seconds(), live, login)

	began = time.Now()
	notReady := 0
	for _, bad := range []struct{ now, start rule }{{full, full}, {broken(0.5), broken(1)}} {
		fail := func() {
			fails.Store(true)
			h.set(bad.now)
			failed := h.failed.Load()
			s.eventually("the disk fails", func() bool { return h.failed.Load() > failed+5 })
		}
		recover := func() {
			h.set(nil)
			s.eventually("everybody is back", c.allHere)
			arrived := s.book.arrivals.Load()
			s.eventually("messages arrive again", func() bool { return s.book.arrivals.Load() > arrived+50 })
			fails.Store(false)
		}
		fail()
		if s.relay.ready() != http.StatusOK {
			notReady++
		}
		time.Sleep(budget(300*time.Millisecond, 2*time.Second))
		s.relay.kill()
		h.set(bad.start)
		s.relay.start()
		s.wantStartRefused()
		h.set(nil)
		s.relay.serve()
		recover()
		// The same without a crash: it goes on by itself.
		fail()
		recover()
	}
	c.hush()
	sum := s.wantAllArrived()
	s.wantEmptyMailboxes(c, homes)
	s.wantGauge()
	s.relay.stop()
	for _, text := range []string{"input/output error", "no space left on device"} {
		if s.relay.logged(text) == 0 {
			t.Errorf("the log does not say %q", text)
		}
	}
	report("bad disk", began, "%d calls failed with EIO or ENOSPC, with crashes and without; a start meanwhile is refused with the reason; /readyz not 200 in %d of 2; %d messages sent, %d accepted, %d arrived, 0 lost, %d came again",
		h.failed.Load(), notReady, sum.sent, sum.accepted, sum.arrived, sum.repeated)
}

// wantStartRefused wants a relay that was started while its disk fails to end by
// itself and to say why.
func (s *stage) wantStartRefused() {
	s.t.Helper()
	select {
	case <-s.relay.ended:
		log := []byte(s.relay.lastLog())
		if s.relay.status == nil || !bytes.Contains(log, []byte("no space left on device")) && !bytes.Contains(log, []byte("input/output error")) {
			s.t.Errorf("a start on a bad disk ends with %v\n%s", s.relay.status, log)
		}
	case <-time.After(patience):
		s.t.Error("a relay that was started on a bad disk goes on")
	}
	s.relay.kill()
}
