package server

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// A bound that was broken before the HTTP answer was written dropped the answer
// as well: the client got a close frame where it expected HTTP.
func TestSlowReaderBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, gatewaytest.NewRecorder(), func(o *Options) { o.MaxBuffered = 1000 })
		if s.gate.enter() != entered {
			t.Fatal("not let in")
		}
		c := newConn(s, "c")
		s.conns.add(c)
		c.accept(gateway.ConnectResult{}, switchingProtocols("dGhlIHNhbXBsZSBub25jZQ=="))
		var err error
		for range 20 {
			_, err = c.post(gateway.Message{Data: []byte(repeat(100))})
		}
		if err != gateway.ErrGone {
			t.Errorf("post: %v", err)
		}
		client, transport := net.Pipe()
		c.start(transport, nil)
		p := &rawPeer{Conn: client, t: t}
		p.readUpgrade()
		if err := p.leave(gateway.CloseSlowReader); err != nil {
			t.Error(err)
		}
		if err := s.Shutdown(t.Context(), 0); err != nil {
			t.Error(err)
		}
	})
}

// stubbornListener lets its Accept return only when it has been closed twice: the
// moment between the two lasts as long as it takes.
type stubbornListener struct {
	first, second chan struct{}
	closes        atomic.Int32
}

func (l *stubbornListener) Accept() (net.Conn, error) {
	<-l.second
	return nil, net.ErrClosed
}

func (l *stubbornListener) Close() error {
	switch l.closes.Add(1) {
	case 1:
		close(l.first)
		return nil
	case 2:
		close(l.second)
	}
	return net.ErrClosed
}

func (l *stubbornListener) Addr() net.Addr { return &net.TCPAddr{} }

// The end of the context of Serve closes the listener, and so does Shutdown; that
// the second of them found it closed made the shutdown fail.
func TestShutdownAfterTheEndOfServe(t *testing.T) {
	s := newServer(t, gatewaytest.NewRecorder())
	l := &stubbornListener{first: make(chan struct{}), second: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	cancel()
	<-l.first
	if err := s.Shutdown(t.Context(), 0); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
}
