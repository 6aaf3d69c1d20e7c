package chaos

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// disk is a file system that can be full.
type disk struct {
	kind   string
	folder string
	fill   func()
	free   func()
}

// smallDisk is a real one of 24 MB, if we may mount it; otherwise the kernel
// answers the relay's writes as if it were full.
func smallDisk(t *testing.T, s *stage, h *hold) disk {
	t.Helper()
	folder := s.relay.data
	err := syscall.Mount("chaos", folder, "tmpfs", 0, "size=24m,mode=700")
	if err != nil {
		h.apply(s.relay)
		return disk{fmt.Sprintf("ENOSPC by the kernel, as a mount was refused (%v)", err), folder,
			func() { h.set(full) }, func() { h.set(nil) }}
	}
	t.Cleanup(func() {
		s.relay.kill()
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Errorf("failed to unmount: %v", err)
		}
	})
	filler := filepath.Join(folder, "filler")
	return disk{"tmpfs of 24 MB", folder,
		func() { fillUp(t, filler) },
		func() {
			if err := os.Remove(filler); err != nil {
				t.Errorf("failed to give the space back: %v", err)
			}
		}}
}

// fillUp writes until there is no space at all.
func fillUp(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatalf("failed to fill the disk: %v", err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 1; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 4096 // a page is the least there is
			if size == 1 {
				return
			}
			if size == 0 {
				size = 4096
			}
		}
	}
}

// The disk is full. Senders are told: their connection is closed with 1011, and the
// log says why. What flows without the disk goes on. When there is space again,
// everything works again, without a restart, and nothing is lost; a relay that is
// started while the disk is full says so and ends.
func playFullDisk(t *testing.T, u *suite) {
	began := time.Now()
	s := u.stage(t, t.TempDir())
	h := &hold{binary: u.binary}
	d := smallDisk(t, s, h)
	s.relay.serve()
	homes := s.settle(4, 2)
	bystanders := s.settle(1, 2)[0]
	live := s.converse(bystanders)
	live()

	var isFull atomic.Bool
	c := s.gather(homes, habits{
		size: 20 << 10, pause: 5 * time.Millisecond, leaving: 0.01, away: 200 * time.Millisecond, liveOnes: 0.1,
		failing: isFull.Load,
	}, u.seed)
	s.eventually("messages arrive", func() bool { return s.book.arrivals.Load() > 200 })

	var notReady int
	rounds := budget(2, 5)
	for range rounds {
		failed := func() float64 { return s.relay.peek()[`blindpost_closes_total{code="1011"}`] }
		isFull.Store(true)
		before := failed()
		d.fill()
		s.eventually("the relay notices", func() bool { return failed() > before+10 })
		live() // needs no disk
		if s.relay.ready() == http.StatusServiceUnavailable {
			notReady++
		}
		sumBefore, _ := s.book.audit()
		time.Sleep(budget(300*time.Millisecond, time.Second))
		if sumAfter, _ := s.book.audit(); sumAfter.accepted != sumBefore.accepted {
			t.Logf("%d messages were accepted on a full disk", sumAfter.accepted-sumBefore.accepted)
		}
		d.free()
		arrived := s.book.arrivals.Load()
		s.eventually("messages arrive again", func() bool { return s.book.arrivals.Load() > arrived+100 })
		s.eventually("everybody is back", c.allHere)
		s.eventually("the relay is ready again", func() bool { return s.relay.ready() == http.StatusOK })
		isFull.Store(false)
		// Closes that were decided while the disk was full may still be under way.
	}

	// A crash on a full disk, and a start.
	isFull.Store(true)
	d.fill()
	time.Sleep(100 * time.Millisecond)
	s.relay.kill()
	s.relay.start()
	refusedStart := s.wantStartRefused()
	d.free()
	s.relay.serve()
	s.eventually("everybody is back", c.allHere)
	isFull.Store(false)
	c.hush()
	sum := s.wantAllArrived()
	s.wantEmptyMailboxes(c, homes)
	s.relay.stop()
	if s.relay.logged("no space left on device") == 0 {
		t.Error("the log does not say that the disk is full")
	}
	report("full disk", began, "%s; full %d times under load and once at start (%s); /readyz 503 in %d of %d; %d messages sent, %d accepted, %d arrived, 0 lost, %d came again",
		d.kind, rounds+1, refusedStart, notReady, rounds, sum.sent, sum.accepted, sum.arrived, sum.repeated)
}

// wantStartRefused wants a relay that was started on a full disk to end by itself
// and to say why; one that finds enough space in its own file may go on.
func (s *stage) wantStartRefused() string {
	s.t.Helper()
	select {
	case <-s.relay.ended:
		if s.relay.status == nil || !bytes.Contains([]byte(s.relay.lastLog()), []byte("no space left on device")) {
			s.t.Errorf("a start on a full disk ends with %v\n%s", s.relay.status, s.relay.lastLog())
		}
		s.relay.kill()
		return "refused with a reason"
	case <-time.After(2 * time.Second):
		s.relay.kill()
		return "went on"
	}
}
