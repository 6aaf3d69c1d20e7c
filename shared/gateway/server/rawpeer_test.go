package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/wire"
)

// rawPeer is a client that can do everything wrong.
type rawPeer struct {
	net.Conn
	t  testing.TB
	br *bufio.Reader
}

// upgradeRequest asks for WebSocket as a proxy would forward it.
const upgradeRequest = "GET / HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-Forwarded-Proto: https\r\n\r\n"

// upgraded performs the handshake on a transport.
func upgraded(t testing.TB, nc net.Conn) *rawPeer {
	t.Helper()
	t.Cleanup(func() { _ = nc.Close() })
	p := &rawPeer{Conn: nc, t: t}
	p.send([]byte(upgradeRequest))
	p.readUpgrade()
	return p
}

func (p *rawPeer) readUpgrade() {
	p.t.Helper()
	if err := p.tryUpgrade(); err != nil {
		p.t.Fatalf("failed to upgrade: %v", err)
	}
}

// tryUpgrade returns an error if the connection ends before the answer, and fails the
// test as well if the answer is wrong.
func (p *rawPeer) tryUpgrade() error {
	p.br = bufio.NewReader(p.Conn)
	res, err := http.ReadResponse(p.br, nil)
	if err != nil {
		return err
	}
	// The key and the answer are the example of RFC 6455.
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		p.t.Errorf("upgrade was answered with %s %v", res.Status, res.Header)
		return errors.New("not upgraded")
	}
	return nil
}

func dialRaw(t testing.TB, addr net.Addr) *rawPeer {
	t.Helper()
	nc, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return upgraded(t, nc)
}

func dialTLS(t testing.TB, addr net.Addr, cfg *tls.Config) net.Conn {
	t.Helper()
	nc, err := tls.Dial("tcp", addr.String(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return nc
}

func (p *rawPeer) send(parts ...[]byte) {
	p.t.Helper()
	var all []byte
	for _, b := range parts {
		all = append(all, b...)
	}
	if _, err := p.Write(all); err != nil {
		p.t.Fatalf("failed to send: %v", err)
	}
}

// sendAside sends large data from a goroutine of its own, while the test reads.
func (p *rawPeer) sendAside(b []byte) {
	go func() {
		if _, err := p.Write(b); err != nil {
			p.t.Errorf("failed to send: %v", err)
		}
	}()
}

// next reads one frame of the server.
func (p *rawPeer) next() (ws.OpCode, []byte, error) {
	f, err := wire.ReadServer(p.br)
	return f.Header.OpCode, f.Payload, err
}

func (p *rawPeer) want(op ws.OpCode, payload string) {
	p.t.Helper()
	got, b, err := p.next()
	if err != nil || got != op || string(b) != payload {
		p.t.Fatalf("got frame %#x %.60q (%d bytes), %v, want %#x %.60q", got, b, len(b), err, op, payload)
	}
}

// wantPing reads a ping with 8 bytes and returns them.
func (p *rawPeer) wantPing() []byte {
	p.t.Helper()
	op, b, err := p.next()
	if err != nil || op != ws.OpPing || len(b) != 8 {
		p.t.Fatalf("got frame %#x %.60q, %v, want a confirmation ping", op, b, err)
	}
	return b
}

// closed reads up to a close frame and checks its code.
func (p *rawPeer) closed(code gateway.CloseCode) (reason string, err error) {
	for {
		op, b, err := p.next()
		switch {
		case err != nil:
			return "", fmt.Errorf("no close frame: %w", err)
		case op != ws.OpClose:
			continue
		case len(b) < 2:
			if code != gateway.CloseNoStatus {
				return "", fmt.Errorf("close frame without a code, want %d", code)
			}
			return "", nil
		}
		if got := gateway.CloseCode(binary.BigEndian.Uint16(b)); got != code {
			return "", fmt.Errorf("closed with %d %q, want %d", got, b[2:], code)
		}
		return string(b[2:]), nil
	}
}

func (p *rawPeer) wantClose(code gateway.CloseCode) (reason string) {
	p.t.Helper()
	reason, err := p.closed(code)
	if err != nil {
		p.t.Fatal(err)
	}
	return reason
}

// ended expects that the server has closed the transport.
func (p *rawPeer) ended() error {
	if op, b, err := p.next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("got frame %#x %.60q, %w, want the end", op, b, err)
	}
	return nil
}

func (p *rawPeer) wantEOF() {
	p.t.Helper()
	if err := p.ended(); err != nil {
		p.t.Fatal(err)
	}
}

// leave answers a close and goes.
func (p *rawPeer) leave(code gateway.CloseCode) error {
	if _, err := p.closed(code); err != nil {
		return err
	}
	if _, err := p.Write(clientClose(code, "")); err != nil {
		return fmt.Errorf("failed to answer a close: %w", err)
	}
	return p.ended()
}

// goAway closes, and expects that to be answered.
func (p *rawPeer) goAway(code gateway.CloseCode) {
	p.t.Helper()
	p.send(clientClose(code, ""))
	p.wantClose(code)
	p.wantEOF()
}

// masked is a client's frame; first is its first byte (FIN, RSV, opcode).
func masked(first byte, payload []byte) []byte {
	b := maskedHeader(first, uint64(len(payload)))
	mask := b[len(b)-4:]
	for i, c := range payload {
		b = append(b, c^mask[i%4])
	}
	return b
}

func maskedHeader(first byte, n uint64) []byte {
	b := []byte{first}
	switch {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), n)
	}
	return append(b, 0x12, 0x34, 0x56, 0x78)
}

func text(s string) []byte       { return masked(0x81, []byte(s)) }
func binaryMsg(s string) []byte  { return masked(0x82, []byte(s)) }
func clientPing(s string) []byte { return masked(0x89, []byte(s)) }
func clientPong(b []byte) []byte { return masked(0x8a, b) }

func clientClose(code gateway.CloseCode, reason string) []byte {
	return masked(0x88, append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...))
}

// pipeListener hands out net.Pipe connections, which work in a synctest bubble.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   atomic.Bool
	port   atomic.Int32
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	if l.once.CompareAndSwap(false, true) {
		close(l.closed)
	}
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr(1) }

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- fromLoopback{server, pipeAddr(l.port.Add(1) + 1000)}
	return client
}

// fromLoopback is a pipe with the address of a TCP connection.
type fromLoopback struct {
	net.Conn
	addr net.Addr
}

func (c fromLoopback) RemoteAddr() net.Addr { return c.addr }

func pipeAddr(port int32) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)} }

// bubble starts a server in the synctest bubble of the caller; dial connects to
// it and upgrades.
func bubble(t *testing.T, h gateway.Handler, change ...func(*Options)) (s *Server, dial func() *rawPeer) {
	s, l := bubbleListener(t, h, change...)
	return s, func() *rawPeer {
		t.Helper()
		return upgraded(t, l.dial())
	}
}

func bubbleListener(t *testing.T, h gateway.Handler, change ...func(*Options)) (*Server, *pipeListener) {
	s := newServer(t, h, change...)
	l := newPipeListener()
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx, 0); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := s.check(); err != nil {
			t.Error(err)
		}
	})
	return s, l
}

// repeat is a payload of n bytes.
func repeat(n int) string { return strings.Repeat("x", n) }
