package server

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// lateConn is a transport whose writes return a while after the peer has all of them.
type lateConn struct {
	net.Conn
	mu   sync.Mutex
	late time.Duration
}

func (l *lateConn) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	l.mu.Lock()
	d := l.late
	l.mu.Unlock()
	time.Sleep(d)
	return n, err
}

// A peer that has confirmed a window can be sent the next one at once, although the
// write of the first has not returned: what it has read waits for it no more.
func TestConfirmedIsNotBufferedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		window := make([]byte, 600<<10)
		var s *Server
		sent := 1
		rec.OnConfirmed = func(ctx context.Context, e gateway.ConfirmedEvent) error {
			if sent == 3 {
				return nil
			}
			sent++
			_, err := s.Post(ctx, e.Conn, gateway.Message{Data: window, Mark: uint64(sent)})
			return err
		}
		var l *pipeListener
		s, l = bubbleListener(t, rec, func(o *Options) { o.MaxBuffered = 1 << 20 })
		client, end := net.Pipe()
		late := &lateConn{Conn: end}
		l.conns <- fromLoopback{late, pipeAddr(2000)}
		p := upgraded(t, client)
		id := rec.WaitConnects(t, 1)[0]
		synctest.Wait()
		late.mu.Lock()
		late.late = time.Second
		late.mu.Unlock()
		if _, err := s.Post(t.Context(), id, gateway.Message{Data: window, Mark: 1}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			p.want(ws.OpBinary, string(window))
			p.send(clientPong(p.wantPing()))
		}
		p.goAway(1000)
		rec.WaitDisconnect(t, id)
	})
}
