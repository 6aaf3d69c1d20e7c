package tcpproxy

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// pair is the two ends of a connection through the proxy.
type pair struct{ peer, server *net.TCPConn }

// network is a proxy and the server behind it.
func network(t *testing.T) (x *Proxy, connect func() pair) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	x = New(t, l.Addr().String())
	return x, func() pair {
		t.Helper()
		near, err := x.DialContext(t.Context(), "tcp", "elsewhere.example:443")
		if err != nil {
			t.Fatal(err)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = near.Close(), far.Close() })
		for _, c := range []net.Conn{near, far} {
			_ = c.SetDeadline(time.Now().Add(patience))
		}
		return pair{near.(*net.TCPConn), far.(*net.TCPConn)}
	}
}

// noise is the same bytes in every run.
func noise(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func wantRead(t *testing.T, c net.Conn, text string) {
	t.Helper()
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Fatalf("read %q, %v, want %q", b, err, text)
	}
}

// A goodbye in one direction does not end the other.
func TestCarriesBothWays(t *testing.T) {
	_, connect := network(t)
	p := connect()
	asked, answered := noise(3<<20), noise(2<<20)
	go func() {
		_, _ = p.peer.Write(asked)
		_ = p.peer.CloseWrite()
	}()
	if got, err := io.ReadAll(p.server); err != nil || !bytes.Equal(got, asked) {
		t.Fatalf("%d bytes of %d arrived, %v", len(got), len(asked), err)
	}
	go func() {
		_, _ = p.server.Write(answered)
		_ = p.server.Close()
	}()
	if got, err := io.ReadAll(p.peer); err != nil || !bytes.Equal(got, answered) {
		t.Fatalf("%d bytes of %d came back, %v", len(got), len(answered), err)
	}
}

// stalled writes until the window is full, and returns how much that was. It is more
// than any socket buffers.
func stalled(t *testing.T, c *net.TCPConn, all []byte) int {
	t.Helper()
	_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	n, err := c.Write(all)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("all of %d bytes went into a frozen network: %d, %v", len(all), n, err)
	}
	_ = c.SetWriteDeadline(time.Now().Add(patience))
	return n
}

// wantSilence wants that nothing more than what one direction holds has arrived, and
// no end either. It returns what has.
func wantSilence(t *testing.T, c *net.TCPConn) []byte {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	got, err := io.ReadAll(c)
	if !errors.Is(err, os.ErrDeadlineExceeded) || len(got) > chunk {
		t.Fatalf("a frozen network carried %d bytes, and then %v", len(got), err)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	return got
}

// Nothing arrives and nobody is told; when it thaws, everything does, in order.
func TestFreezeAndThaw(t *testing.T) {
	x, connect := network(t)
	p := connect()
	write(t, p.peer, "before")
	wantRead(t, p.server, "before")
	x.Freeze()
	up, down := noise(24<<20), noise(65<<20)
	n, m := stalled(t, p.peer, up), stalled(t, p.server, down)
	atServer, atPeer := wantSilence(t, p.server), wantSilence(t, p.peer)
	x.Thaw()
	for _, way := range []struct {
		from, to *net.TCPConn
		rest     []byte
		got, all []byte
	}{{p.peer, p.server, up[n:], atServer, up}, {p.server, p.peer, down[m:], atPeer, down}} {
		go func() {
			_, _ = way.from.Write(way.rest)
			_ = way.from.CloseWrite()
		}()
		rest, err := io.ReadAll(way.to)
		if got := append(way.got, rest...); err != nil || !bytes.Equal(got, way.all) {
			t.Fatalf("%d bytes of %d arrived, %v", len(got), len(way.all), err)
		}
	}
}

// Who hangs up in a tunnel is not heard of before it ends.
func TestGoodbyeInATunnel(t *testing.T) {
	x, connect := network(t)
	p := connect()
	x.Freeze()
	write(t, p.peer, "last words")
	_ = p.peer.Close()
	if got := wantSilence(t, p.server); len(got) != 0 {
		t.Fatalf("%q came through", got)
	}
	x.Thaw()
	if got, err := io.ReadAll(p.server); err != nil || string(got) != "last words" {
		t.Fatalf("read %q, %v", got, err)
	}
}

// A new connection is as frozen as the old one.
func TestConnectInATunnel(t *testing.T) {
	x, connect := network(t)
	x.Freeze()
	p := connect()
	write(t, p.peer, "hello")
	if got := wantSilence(t, p.server); len(got) != 0 {
		t.Fatalf("%q came through", got)
	}
	x.Thaw()
	wantRead(t, p.server, "hello")
}

// Half a network: the peer hears, and is not heard.
func TestFreezeUp(t *testing.T) {
	x, connect := network(t)
	p := connect()
	x.FreezeUp()
	all := noise(24 << 20)
	n := stalled(t, p.peer, all)
	write(t, p.server, "down")
	wantRead(t, p.peer, "down")
	got := wantSilence(t, p.server)
	x.Freeze()
	write(t, p.server, "more")
	first := wantSilence(t, p.peer) // one direction may have been waiting for it
	x.Thaw()
	wantRead(t, p.peer, "more"[len(first):])
	rest := make([]byte, n-len(got))
	if _, err := io.ReadFull(p.server, rest); err != nil || !bytes.Equal(append(got, rest...), all[:n]) {
		t.Fatalf("what was under way did not arrive: %v", err)
	}
}

// Both ends notice, from a tunnel as well; and new connections are none of it.
func TestCut(t *testing.T) {
	for name, before := range map[string]func(*Proxy){
		"flowing": func(*Proxy) {}, "frozen": (*Proxy).Freeze, "frozen up": (*Proxy).FreezeUp,
	} {
		t.Run(name, func(t *testing.T) {
			x, connect := network(t)
			p := connect()
			write(t, p.peer, "before")
			wantRead(t, p.server, "before")
			before(x)
			x.Cut()
			for _, c := range []*net.TCPConn{p.peer, p.server} {
				if n, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("read %d bytes, %v, want a reset", n, err)
				}
			}
			x.Thaw()
			again := connect()
			write(t, again.peer, "after")
			wantRead(t, again.server, "after")
		})
	}
}

// A server that breaks its connection breaks that of the peer.
func TestServerThatBreaks(t *testing.T) {
	_, connect := network(t)
	p := connect()
	write(t, p.peer, "x")
	wantRead(t, p.server, "x")
	_ = p.server.SetLinger(0)
	_ = p.server.Close()
	if n, err := p.peer.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v", n, err)
	}
}

// A target that is away, as a relay is while it starts again.
func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	x := New(t, address)
	for range 2 {
		c, err := net.Dial("tcp", x.Address())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read %d bytes, %v", n, err)
		}
		_ = c.Close()
	}
}

// What has ended on both sides is kept by nobody, and the end of the test ends the rest.
func TestNothingIsLeft(t *testing.T) {
	var x *Proxy
	var p pair
	t.Run("goodbye", func(t *testing.T) {
		var connect func() pair
		x, connect = network(t)
		for range 3 {
			done := connect()
			_, _ = done.peer.Close(), done.server.Close()
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		late := time.AfterFunc(patience, x.woken.Broadcast)
		for began := time.Now(); len(x.open) > 0; x.woken.Wait() {
			if time.Since(began) >= patience {
				t.Fatalf("%d connections of nobody are open", len(x.open))
			}
		}
		late.Stop()
	})
	t.Run("end", func(t *testing.T) {
		var connect func() pair
		x, connect = network(t)
		p = connect()
		x.Freeze()
		write(t, p.peer, "never read")
	})
	if len(x.open) != 0 {
		t.Errorf("%d connections are left", len(x.open))
	}
	if _, err := net.Dial("tcp", x.Address()); err == nil {
		t.Error("it still listens")
	}
}
