package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// counted counts the writes that reach a transport.
type counted struct {
	net.Conn
	mu     sync.Mutex
	writes []int
}

func (c *counted) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.writes = append(c.writes, len(p))
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// TestBatchIsOneWrite, also under TLS, whose records would be a write each.
func TestBatchIsOneWrite(t *testing.T) {
	serverTLS, clientTLS := testCert()
	for _, secure := range []bool{false, true} {
		a, b := net.Pipe()
		inner := &counted{Conn: b}
		s := newServer(t, nil)
		c := newConn(s, "c")
		var client net.Conn = a
		var handshake sync.WaitGroup
		if secure {
			tlsClient, tlsServer := tls.Client(a, clientTLS), tls.Server(&corkConn{Conn: inner}, serverTLS)
			client, c.nc = tlsClient, tlsServer
			handshake.Go(func() { _ = tlsClient.Handshake(); _, _ = client.Read(nil) })
			if err := tlsServer.Handshake(); err != nil {
				t.Fatal(err)
			}
			handshake.Wait()
		} else {
			c.nc = inner
		}
		inner.writes = nil
		batch := []byte(strings.Repeat("0123456789abcdef", 10<<10)) // 160 KiB
		var got strings.Builder
		var reader sync.WaitGroup
		reader.Go(func() { _, _ = io.CopyN(&got, client, int64(len(batch))) })
		if err := c.writeAll(batch); err != nil {
			t.Fatal(err)
		}
		reader.Wait()
		if got.String() != string(batch) {
			t.Errorf("TLS %v: got %d bytes, or in another order", secure, got.Len())
		}
		if len(inner.writes) != 3 { // 64, 64 and 32 KiB
			t.Errorf("TLS %v: %d writes: %v", secure, len(inner.writes), inner.writes)
		}
		_, _ = a.Close(), b.Close()
	}
}

// gatedConn is a transport whose writes wait.
type gatedConn struct {
	net.Conn
	begun, release chan struct{}
	got            []byte
}

func (g *gatedConn) Write(p []byte) (int, error) {
	g.begun <- struct{}{}
	<-g.release
	g.got = append(g.got, p...)
	return len(p), nil
}

// TestCorkKeepsOrder writes from beside while a batch is being flushed, as TLS
// does when the peer asks for new keys.
func TestCorkKeepsOrder(t *testing.T) {
	g := &gatedConn{begun: make(chan struct{}, 2), release: make(chan struct{})}
	k := &corkConn{Conn: g}
	k.cork()
	for _, s := range []string{"a", "b", "c"} {
		if _, err := k.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := k.flush(); err != nil {
			t.Error(err)
		}
	})
	<-g.begun
	wg.Go(func() { _, _ = k.Write([]byte("d")) })
	close(g.release)
	wg.Wait()
	if string(g.got) != "abcd" {
		t.Errorf("wrote %q", g.got)
	}
}

// TestForeignServer mounts the front in an http.Server that is not its own.
func TestForeignServer(t *testing.T) {
	serverTLS, clientTLS := testCert()
	var s *Server
	rec := echo(&s)
	s = newServer(t, rec, func(o *Options) { o.TrustedProxies, o.ReadLimit = nil, 1<<20 })
	h := httptest.NewUnstartedServer(s)
	h.TLS = serverTLS.Clone()
	h.StartTLS()
	defer h.Close()
	clientTLS = clientTLS.Clone()
	clientTLS.InsecureSkipVerify = true // httptest adds a certificate of its own
	p := upgraded(t, dialTLS(t, h.Listener.Addr(), clientTLS))
	p.sendAside(binaryMsg(repeat(1 << 20)))
	p.want(ws.OpBinary, repeat(1<<20))
	p.goAway(1000)
	if err := s.Shutdown(t.Context(), 0); err != nil {
		t.Error(err)
	}
	rec.Check(t)
}

func TestLookupsDoNotAllocate(t *testing.T) {
	s := newServer(t, echoHandler{})
	c := newConn(s, "c")
	s.conns.add(c)
	c.accept(gateway.ConnectResult{}, nil)
	for name, f := range map[string]func(){
		"gone":    func() { _ = s.Gone("c") },
		"stat":    func() { _, _ = s.Stat(context.Background(), "c") },
		"unknown": func() { _, _ = s.Post(context.Background(), "nobody", gateway.Message{}) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestIDsMustNotRepeat(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	s := newServer(t, rec, func(o *Options) { o.NewConn = func() gateway.Conn { return "always the same" } })
	addr := serve(t, s)
	p := dialRaw(t, addr)
	if res, _ := ask(t, addr, upgradeRequest); res.StatusCode != 500 {
		t.Errorf("status is %d", res.StatusCode)
	}
	if _, err := s.Post(t.Context(), "always the same", gateway.Message{Data: []byte("hello")}); err != nil {
		t.Error(err)
	}
	p.want(ws.OpBinary, "hello")
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no ids":           {},
		"negative limit":   {NewConn: ids(), ReadLimit: -1},
		"negative timeout": {NewConn: ids(), IdleAfter: -time.Second},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestObserver(t *testing.T) {
	obs := &counting{}
	_, rec, dial := startEcho(t, func(o *Options) { o.Observer = obs })
	p := dial()
	p.send(text("12345"), binaryMsg("123"))
	p.want(ws.OpText, "12345")
	p.want(ws.OpBinary, "123")
	p.goAway(4321)
	rec.WaitDisconnect(t, rec.WaitConnects(t, 1)[0])
	for done := false; !done; { // Closed comes right after Disconnect
		obs.do(func() { done = obs.closed == 1 })
	}
	obs.do(func() {
		if obs.opened != 1 || obs.in != 2 || obs.inBytes != 8 || obs.out != 2 || obs.outBytes != 8 || obs.buffered != 0 || obs.codes[0] != 4321 {
			t.Errorf("observed %+v", obs)
		}
	})
}
