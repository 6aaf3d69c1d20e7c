package server

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// script is a transport that says what the fuzzer wrote, in pieces of step
// bytes, and takes everything that is written to it.
type script struct {
	mu     sync.Mutex
	says   []byte
	step   int
	closed bool
	wrote  int
}

func (s *script) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.says) == 0 || s.closed {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.step)], s.says)
	s.says = s.says[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	s.wrote += len(p)
	return len(p), nil
}

func (s *script) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (*script) LocalAddr() net.Addr              { return nil }
func (*script) RemoteAddr() net.Addr             { return nil }
func (*script) SetDeadline(time.Time) error      { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }

// limitWatch is a handler that fails the test when a limit is not kept.
type limitWatch struct {
	t            *testing.T
	limit        int64
	s            *Server
	disconnected chan gateway.CloseCode
	over         bool // an oversize frame has come: the last event but Disconnect
}

func (*limitWatch) Connect(context.Context, gateway.ConnectEvent) (gateway.ConnectResult, error) {
	return gateway.ConnectResult{}, nil
}

func (h *limitWatch) Frame(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
	switch {
	case h.over:
		h.t.Error("a frame after an oversize one")
	case e.Oversize:
		h.over = true
		if e.Size <= h.limit || e.Data != nil {
			h.t.Errorf("oversize of %d bytes, limit %d", e.Size, h.limit)
		}
	case int64(len(e.Data)) > h.limit:
		h.t.Errorf("got %d bytes, limit %d", len(e.Data), h.limit)
	case len(e.Data) > 0 && e.Data[0] == 'L': // changes the limit
		h.limit = int64(len(e.Data)) * 40
		return gateway.FrameResult{ReadLimit: h.limit}, nil
	}
	_, _ = h.s.Post(ctx, e.Conn, gateway.Message{Data: e.Data, Mark: uint64(len(e.Data))}) // may be closed already
	return gateway.FrameResult{}, nil
}

func (*limitWatch) Confirmed(context.Context, gateway.ConfirmedEvent) error { return nil }

func (h *limitWatch) Disconnect(_ context.Context, e gateway.DisconnectEvent) error {
	h.disconnected <- e.Code
	return nil
}

// FuzzFrames sends arbitrary bytes after the upgrade. What it covers depends a
// little on the scheduler, over which the minimizing of an input can sit for a
// minute: run it with -fuzzminimizetime=10x.
func FuzzFrames(f *testing.F) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, seed := range [][]byte{
		nil, {0x81}, {0x81, 0x80}, text("hello"), binaryMsg(repeat(300)), binaryMsg(repeat(70000)),
		join(text("L"+repeat(400)), binaryMsg(repeat(16000)), text("L"), binaryMsg(repeat(41))),
		join(masked(0x01, []byte("a")), clientPing("p"), masked(0x00, nil), masked(0x80, []byte("b"))),
		join(clientPong([]byte{0, 0, 0, 0, 0, 0, 0, 1}), text("x"), clientPong([]byte{0, 0, 0, 0, 0, 0, 0, 1})),
		clientClose(1000, "bye"), clientClose(1005, ""), masked(0x88, nil), masked(0x88, []byte{1}),
		maskedHeader(0x82, 1<<63-1), maskedHeader(0x82, 1<<63), join(masked(0x02, []byte(repeat(900))), maskedHeader(0x80, 1<<63-1)),
		{0x81, 0x02, 'h', 'i'}, masked(0xf1, nil), masked(0x83, nil), masked(0x80, nil), masked(0x81, []byte{0xff}),
	} {
		f.Add(seed, uint16(7))
		f.Add(seed, uint16(65535))
	}
	f.Fuzz(func(t *testing.T, says []byte, step uint16) {
		h := &limitWatch{t: t, limit: 1000, disconnected: make(chan gateway.CloseCode, 2)}
		s := newServer(t, h)
		h.s = s
		if s.gate.enter() != entered {
			t.Fatal("not let in")
		}
		c := newConn(s, "fuzz")
		s.conns.add(c)
		c.accept(gateway.ConnectResult{ReadLimit: h.limit}, []byte("101"))
		early := min(len(says), int(step)/2)
		nc := &script{says: says[early:], step: int(step) + 1}
		c.start(nc, says[:early])
		<-h.disconnected
		empty := s.gate.close()
		<-empty // nothing of the connection runs any more
		if len(h.disconnected) != 0 {
			t.Error("disconnected twice")
		}
		if !nc.closed {
			t.Error("the transport was left open")
		}
		if c.queued != 0 || c.out != nil || c.in.pool != nil || c.in.message != nil {
			t.Error("something is still buffered")
		}
		if err := s.check(); err != nil {
			t.Error(err)
		}
	})
}
