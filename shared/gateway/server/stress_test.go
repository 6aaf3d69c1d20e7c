package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// TestManyEnds lets many connections end in all ways at once, while others post
// to them. Each accepted one must be disconnected once, and nothing may be left.
func TestManyEnds(t *testing.T) {
	const rounds, peers = 6, 25
	rec := gatewaytest.NewRecorder()
	s := newServer(t, rec, func(o *Options) {
		o.CloseWait, o.WriteTimeout, o.MaxBuffered = 100*time.Millisecond, 200*time.Millisecond, 256<<10
	})
	rec.OnFrame = func(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
		switch string(e.Data) {
		case "fail":
			return gateway.FrameResult{}, errors.New("failed on purpose")
		case "panic":
			panic("on purpose")
		case "close":
			return gateway.FrameResult{}, s.Close(ctx, e.Conn, gateway.ClosePolicy, "asked for")
		}
		if _, err := s.Post(ctx, e.Conn, gateway.Message{Data: e.Data, Mark: 1}); !errors.Is(err, gateway.ErrGone) {
			return gateway.FrameResult{}, err
		}
		return gateway.FrameResult{}, nil
	}
	addr := serve(t, s)

	stop := make(chan struct{})
	var posters sync.WaitGroup
	for range 2 {
		posters.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, c := range s.conns.all() {
					_, _ = s.Post(context.Background(), c.id, gateway.Message{Data: make([]byte, 500), Mark: 2}) // many are gone
					_ = s.Gone(c.id)
					_, _ = s.Stat(context.Background(), c.id)
				}
			}
		})
	}
	for round := range rounds {
		var wg sync.WaitGroup
		for i := range peers {
			wg.Go(func() {
				chance := rand.New(rand.NewPCG(uint64(round), uint64(i)))
				nc, err := net.Dial("tcp", addr.String())
				if err != nil {
					t.Errorf("failed to connect: %v", err)
					return
				}
				defer nc.Close()
				_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
				p := &rawPeer{Conn: nc, t: t}
				if _, err := p.Write([]byte(upgradeRequest)); err != nil {
					t.Errorf("failed to ask for an upgrade: %v", err)
					return
				}
				if p.tryUpgrade() != nil {
					return // those who post were faster than it could read: cut as a slow reader, another end
				}
				for range chance.IntN(5) {
					_, _ = p.Write(text("hello")) // it may have been cut
					if op, b, err := p.next(); err == nil && op == ws.OpPing && chance.IntN(2) == 0 {
						_, _ = p.Write(clientPong(b))
					}
				}
				switch end := chance.IntN(8); end {
				case 0:
					_, _ = p.Write(text("fail"))
				case 1:
					_, _ = p.Write(text("panic"))
				case 2:
					_, _ = p.Write(text("close"))
				case 3:
					_, _ = p.Write(clientClose(1000, ""))
				case 4:
					_, _ = p.Write([]byte{0xff, 0xff, 0xff})
				case 5:
					_ = p.Conn.(*net.TCPConn).CloseWrite()
				case 6:
					return // vanishes
				case 7:
					_ = p.Conn.(*net.TCPConn).SetLinger(0) // vanishes with a reset
					return
				}
				for chance.IntN(200) > 0 {
					if _, _, err := p.next(); err != nil {
						return
					}
				}
			})
		}
		wg.Wait()
	}
	close(stop)
	posters.Wait()
	for _, id := range rec.WaitConnects(t, rounds*peers) {
		rec.WaitDisconnect(t, id)
	}
	rec.Check(t)
}
