package chaos

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gobwas/ws"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
)

// One address opens connections as fast as it can: bare TCP, TLS, upgrades, and
// upgrades with a wrong Auth. Hundreds more, from other addresses, are opened and
// say nothing. Others, who have addresses of their own, work on. Then everything
// is as before.
func playFlood(t *testing.T, u *run) {
	began := time.Now()
	if ownAddress(&member{}).from == nil {
		report("flood", began, "NOT RUN: this system has one loopback address only")
		t.Skip("one loopback address only")
	}
	s := u.stage(t, t.TempDir(), append(perAddress("30"), "--challenge-timeout", "3s")...)
	s.ways = ownAddress
	s.relay.serve()
	probe := s.probe(s.settle(1, 2)[0])
	s.eventually("a visitor has been there", func() bool { return probe.logins() > 0 })
	calm := s.relay.scrape()
	calmGoroutines, _ := s.relay.goroutines()

	// Those who say nothing.
	const silent = 300
	var quiet sync.WaitGroup
	var timedOut atomic.Int64
	for i := range silent {
		w, err := dialWire(t.Context(), s.relay.address, s.relay.tls, way{from: net.IPv4(127, 254, 0, byte(i/20))})
		if err != nil {
			t.Fatalf("failed to open a silent connection: %v", err)
		}
		t.Cleanup(w.abort)
		quiet.Go(func() {
			if s.wantTimeout(w) {
				timedOut.Add(1)
			}
		})
	}

	// No deadline: it would end dials a moment before it ends the context.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	time.AfterFunc(budget(3*time.Second, 10*time.Second), stop)
	f := &flood{s: s, from: net.IPv4(127, 0, 0, 9)}
	f.run(ctx)
	live, login := probe.end()
	s.relay.scrape()
	if n := f.accepted.Load(); n > 2*30 {
		t.Errorf("%d connections were accepted from one address, more than two windows of 30", n)
	}
	if n := f.broken.Load(); n > f.total()/20 { // a busy machine may be too late for some
		t.Errorf("%d of %d connections were neither accepted nor refused", n, f.total())
	}
	if f.refused.Load() == 0 {
		t.Error("the flood was never refused")
	}
	quiet.Wait()
	if n := timedOut.Load(); n != silent {
		t.Errorf("%d of %d silent connections were closed for being silent", n, silent)
	}
	s.eventually("all that the flood has left is gone", func() bool {
		m := s.relay.peek()
		n, _ := s.relay.goroutines()
		return m.one(t, "blindpost_sockets") == 2 &&
			m.one(t, "process_open_fds") <= calm.one(t, "process_open_fds")+2 &&
			n <= calmGoroutines+2
	})
	s.wantAllArrived()
	s.relay.stop()
	s.relay.wantNoErrors()
	report("flood", began, "%d connections from one address (%.0f/s: %d accepted, %d refused with 429, %d bare, %d broken off), %d silent ones closed after 3 s; bystanders: live %v, login %v",
		f.total(), f.rate(), f.accepted.Load(), f.refused.Load(), f.bare.Load(), f.broken.Load(), timedOut.Load(), live, login)
}

// wantTimeout reads until the relay loses patience with somebody who says
// nothing.
func (s *stage) wantTimeout(w *wire) bool {
	_ = w.nc.SetReadDeadline(time.Now().Add(patience))
	told := false
	for {
		f, err := w.readFrame()
		if err != nil {
			w.abort()
			return told && closedWith(err, ws.StatusCode(gateway.ClosePolicy))
		}
		told = told || f.GetAuthError().GetCode() == "challenge_timeout"
	}
}

// flood is an attacker.
type flood struct {
	s    *stage
	from net.IP

	accepted, refused, bare, broken atomic.Int64

	took time.Duration
}

func (f *flood) total() int64 {
	return f.accepted.Load() + f.refused.Load() + f.bare.Load() + f.broken.Load()
}

func (f *flood) rate() float64 { return float64(f.total()) / f.took.Seconds() }

func (f *flood) run(ctx context.Context) {
	began := time.Now()
	var attackers sync.WaitGroup
	for i := range 12 {
		attackers.Go(func() {
			for ctx.Err() == nil {
				switch {
				case i < 6:
					f.upgrade(ctx)
				case i < 9:
					f.openOnly(ctx, 20*time.Millisecond)
				default:
					f.openOnly(ctx, time.Second)
				}
			}
		})
	}
	attackers.Wait()
	f.took = time.Since(began)
}

// upgrade goes as far as it gets: if it is let in, it says that it is somebody
// else.
func (f *flood) upgrade(ctx context.Context) {
	w, err := dialWire(ctx, f.s.relay.address, f.s.relay.tls, way{from: f.from})
	var status ws.StatusError
	switch {
	case errors.As(err, &status) && status == 429:
		f.refused.Add(1)
		return
	case errors.As(err, &status):
		f.s.book.blame("the flood is answered with %v", err)
		return
	case err != nil:
		if ctx.Err() == nil {
			f.broken.Add(1)
		}
		return
	}
	f.accepted.Add(1)
	victim, liar := f.s.people.newAgent(), f.s.people.newAgent()
	err = f.s.handshake(w, func(nonce []byte) (*skaldpb.RelayFrame, error) {
		a, err := skaldclient.AgentAuth(victim.Identity)(nonce)
		if err != nil {
			return nil, err
		}
		b, err := skaldclient.AgentAuth(liar.Identity)(nonce)
		if err != nil {
			return nil, err
		}
		a.GetAuth().Signature = b.GetAuth().GetSignature()
		return a, nil
	})
	var refused *authError
	if ctx.Err() == nil && (!errors.As(err, &refused) || refused.code != "invalid_signature") {
		f.s.book.blame("a wrong signature is answered with %v", err)
	}
	w.abort()
}

// openOnly connects and says nothing, or nothing that makes sense.
func (f *flood) openOnly(ctx context.Context, hold time.Duration) {
	nc, err := dialTCP(ctx, f.s.relay.address, way{from: f.from})
	if err != nil {
		if !errors.Is(err, syscall.EADDRNOTAVAIL) {
			f.broken.Add(1)
		}
		every(ctx, 10*time.Millisecond)
		return
	}
	defer nc.Close()
	f.bare.Add(1)
	_, _ = nc.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	every(ctx, hold)
	_ = nc.(*net.TCPConn).SetLinger(0)
}
