package server

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/proof/gatewaytest"
)

// takeTurns lets n connections ask for a turn, one after another.
func takeTurns(t *testing.T, h *handshakes, n int) (conns []*corkConn, errs []chan error) {
	t.Helper()
	for range n {
		k := &corkConn{Conn: discardConn{}}
		done := make(chan error, 1)
		go func() { done <- h.begin(k) }()
		synctest.Wait() // in this order
		conns, errs = append(conns, k), append(errs, done)
	}
	return conns, errs
}

type discardConn struct{ net.Conn }

func (discardConn) Write(p []byte) (int, error) { return len(p), nil }
func (discardConn) Close() error                { return nil }

func wantTurn(t *testing.T, who string, done chan error, want error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		if err != want {
			t.Errorf("%s: %v, want %v", who, err, want)
		}
	default:
		t.Errorf("%s still waits", who)
	}
}

func wantWaiting(t *testing.T, who string, done chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		t.Errorf("%s does not wait: %v", who, err)
	default:
	}
}

func TestHandshakesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handshakes{turns: make(chan struct{}, 2), maxWait: 5 * time.Second}
		conns, errs := takeTurns(t, h, 5)
		wantTurn(t, "the first", errs[0], nil)
		wantTurn(t, "the second", errs[1], nil)
		wantWaiting(t, "the third", errs[2])
		_, _ = conns[0].Write(nil) // its answer
		_, _ = conns[0].Write(nil)
		_ = conns[0].Close()
		wantTurn(t, "the third", errs[2], nil)
		wantWaiting(t, "the fourth", errs[3])
		_ = conns[1].Close() // without an answer
		wantTurn(t, "the fourth", errs[3], nil)
		wantWaiting(t, "the fifth", errs[4])
		time.Sleep(h.maxWait - 1)
		wantWaiting(t, "the fifth", errs[4])
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		// At this moment the turns that have lasted as long end.
		select {
		case err := <-errs[4]:
			if err != nil && err != errBusy {
				t.Error(err)
			}
		default:
			t.Error("the fifth waits longer than maxWait")
		}
		_, errs = takeTurns(t, h, 1)
		wantTurn(t, "one more", errs[0], nil)
	})
}

func TestHandshakeGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handshakes{turns: make(chan struct{}, 1), maxWait: 5 * time.Second}
		h.turns <- struct{}{} // held by a connection that does not end
		conns, errs := takeTurns(t, h, 2)
		time.Sleep(h.maxWait)
		for _, done := range errs {
			wantTurn(t, "one that has waited long", done, errBusy)
		}
		for _, k := range conns {
			_ = k.Close() // gives nothing back
		}
		if len(h.turns) != 1 {
			t.Errorf("%d turns are held, want 1", len(h.turns))
		}
	})
}

// A connection that ended while it waited holds no turn.
func TestHandshakeOfAClosedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handshakes{turns: make(chan struct{}, 1), maxWait: 5 * time.Second}
		conns, errs := takeTurns(t, h, 2)
		wantTurn(t, "the first", errs[0], nil)
		_ = conns[1].Close()
		_ = conns[0].Close()
		wantTurn(t, "the second", errs[1], nil)
		if len(h.turns) != 0 {
			t.Errorf("%d turns are held by connections that are closed", len(h.turns))
		}
	})
}

// Handshakes that are broken off, and connections that stay, use up no turns.
func TestHandshakesOverTLS(t *testing.T) {
	serverTLS, clientTLS := testCert()
	s := newServer(t, gatewaytest.NewRecorder(), func(o *Options) { o.TLS = serverTLS })
	addr := serve(t, s)
	for range 3 * cap(newHandshakes(time.Second).turns) {
		nc, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		halfway := &cutConn{Conn: nc}
		_ = tls.Client(halfway, clientTLS).Handshake() // ends after its ClientHello
		_ = nc.Close()
	}
	var open sync.WaitGroup
	for range 3 * cap(newHandshakes(time.Second).turns) {
		open.Go(func() {
			nc, err := tls.Dial("tcp", addr.String(), clientTLS)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = nc.Close() })
		})
	}
	open.Wait()
}

// cutConn can write and not read.
type cutConn struct{ net.Conn }

func (cutConn) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// What a certificate authority asks for is offered, HTTP/2 is not.
func TestProtocolsOffered(t *testing.T) {
	serverTLS, clientTLS := testCert()
	s := newServer(t, gatewaytest.NewRecorder(), func(o *Options) {
		o.TLS = serverTLS.Clone()
		o.TLS.NextProtos = []string{"h2", "http/1.1", "acme-tls/1"}
	})
	addr := serve(t, s)
	for _, c := range []struct {
		ask  []string
		want string
	}{
		{[]string{"acme-tls/1"}, "acme-tls/1"},
		{[]string{"h2", "http/1.1"}, "http/1.1"},
		{nil, ""},
	} {
		cfg := clientTLS.Clone()
		cfg.NextProtos = c.ask
		nc, err := tls.Dial("tcp", addr.String(), cfg)
		if err != nil {
			t.Errorf("asking for %v: %v", c.ask, err)
			continue
		}
		if got := nc.ConnectionState().NegotiatedProtocol; got != c.want {
			t.Errorf("asking for %v: got %q, want %q", c.ask, got, c.want)
		}
		_ = nc.Close()
	}
}
