package server

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// TestSilentPeer reads but never answers: it is pinged at 30, 60 and 90 s, closed
// at 120 s, and cut when it does not answer that either.
func TestSilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		_, dial := bubble(t, rec)
		p := dial()
		start := time.Now()
		since := func() time.Duration { return time.Since(start).Truncate(2 * time.Second) }
		for _, at := range []time.Duration{30, 60, 90} {
			p.want(ws.OpPing, "")
			if since() != at*time.Second {
				t.Errorf("ping after %v", time.Since(start))
			}
		}
		if op, _, _ := p.next(); op == ws.OpPing { // both are due at 120 s
			p.t.Log("pinged once more")
		} else if op != ws.OpClose {
			t.Errorf("got %#x", op)
		}
		if d := time.Since(start); d < 120*time.Second || d > 122*time.Second {
			t.Errorf("closed after %v", d)
		}
		p.wantEOF()
		if d := time.Since(start); d < 121*time.Second || d > 123*time.Second {
			t.Errorf("cut after %v", d)
		}
		e := rec.WaitDisconnect(t, rec.WaitConnects(t, 1)[0])
		if e.Code != gateway.CloseGoingAway || e.Reason != "idle" {
			t.Errorf("disconnect says %d %q", e.Code, e.Reason)
		}
	})
}

// TestHalfOpenPeer is gone without a word: nothing it sends comes, what is sent
// to it goes nowhere.
func TestHalfOpenPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		s, dial := bubble(t, rec)
		p := dial()
		id := rec.WaitConnects(t, 1)[0]
		go func() { _, _ = io.Copy(io.Discard, p.Conn) }()
		start := time.Now()
		if _, err := s.Post(t.Context(), id, gateway.Message{Data: []byte("x"), Mark: 1}); err != nil {
			t.Error(err)
		}
		time.Sleep(200 * time.Second)
		e := rec.WaitDisconnect(t, id)
		if d := e.At.Sub(start); d < 120*time.Second || d > 127*time.Second {
			t.Errorf("gone after %v", d)
		}
		if e.Code != gateway.CloseGoingAway {
			t.Errorf("disconnect says %d", e.Code)
		}
		if got := rec.WaitMarks(t, id, 0); len(got) != 0 {
			t.Errorf("confirmed %v", got)
		}
	})
}

// TestAnyByteKeepsAlive sends pongs, pings, messages, and parts of frames.
func TestAnyByteKeepsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		s, dial := bubble(t, rec)
		p := dial()
		id := rec.WaitConnects(t, 1)[0]
		go func() { _, _ = io.Copy(io.Discard, p.Conn) }()
		long := binaryMsg(repeat(100))
		for i, b := range [][]byte{clientPong(nil), clientPong([]byte("12345678")), clientPing("x"), text("hello"), long[:1], long[1:2], long[2:50], long[50:]} {
			time.Sleep(119 * time.Second)
			p.send(b)
			synctest.Wait()
			st, err := s.Stat(t.Context(), id)
			if err != nil {
				t.Fatalf("closed in spite of %d: %v", i, err)
			}
			if !st.LastActiveAt.Equal(time.Now()) {
				t.Errorf("active at %v, not now, %v", st.LastActiveAt, time.Now())
			}
		}
		if n := len(rec.WaitFrames(t, id, 2)); n != 2 {
			t.Errorf("%d frames", n)
		}
		time.Sleep(121*time.Second + s.o.CloseWait)
		rec.WaitDisconnect(t, id)
	})
}

// TestBusyHandlerIsNotSilence: while a handler runs the peer is not read, so its
// silence means nothing.
func TestBusyHandlerIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		rec.OnFrame = func(context.Context, gateway.FrameEvent) (gateway.FrameResult, error) {
			time.Sleep(10 * time.Minute)
			return gateway.FrameResult{}, nil
		}
		s, dial := bubble(t, rec)
		p := dial()
		id := rec.WaitConnects(t, 1)[0]
		go func() { _, _ = io.Copy(io.Discard, p.Conn) }()
		p.send(text("work"))
		time.Sleep(11 * time.Minute)
		if s.Gone(id) {
			t.Error("closed")
		}
		time.Sleep(2 * time.Minute)
		if !s.Gone(id) {
			t.Error("not closed")
		}
	})
}

// TestPeerStopsReading: the write times out, and the connection is cut, as its
// stream may end in the middle of a frame.
func TestPeerStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, obs := gatewaytest.NewRecorder(), &counting{}
		s, dial := bubble(t, rec, func(o *Options) { o.Observer = obs })
		p := dial()
		id := rec.WaitConnects(t, 1)[0]
		start := time.Now()
		if _, err := s.Post(t.Context(), id, gateway.Message{Data: []byte(repeat(1000)), Mark: 3}); err != nil {
			t.Fatal(err)
		}
		e := rec.WaitDisconnect(t, id)
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("cut after %v", d)
		}
		if e.Code != gateway.CloseSlowReader {
			t.Errorf("disconnect says %d", e.Code)
		}
		if _, _, err := p.next(); err == nil {
			t.Error("the transport is still open")
		}
		obs.do(func() {
			if obs.slow != 1 || obs.buffered != 0 {
				t.Errorf("%d slow readers, %d bytes buffered", obs.slow, obs.buffered)
			}
		})
	})
}

// TestSlowButSteady takes much longer than the write timeout for all that it has
// to read, and is not cut for it.
func TestSlowButSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		s, dial := bubble(t, rec)
		p := dial()
		id := rec.WaitConnects(t, 1)[0]
		const n, size = 30, 100 << 10
		for range n {
			if _, err := s.Post(t.Context(), id, gateway.Message{Data: make([]byte, size)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(t.Context(), id, gateway.CloseNormal, ""); err != nil {
			t.Fatal(err)
		}
		// Close bounds the flush as a whole.
		var got int
		buf := make([]byte, 16<<10)
		for {
			k, err := p.br.Read(buf)
			got += k
			if err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		if got >= n*size || got == 0 {
			t.Errorf("got %d bytes: the flush was not bounded", got)
		}

		p = dial()
		id = rec.WaitConnects(t, 2)[1]
		for range n {
			if _, err := s.Post(t.Context(), id, gateway.Message{Data: make([]byte, size)}); err != nil {
				t.Fatal(err)
			}
		}
		for got = 0; got < n*size; {
			k, err := p.br.Read(buf)
			if err != nil {
				t.Fatalf("cut after %d of %d bytes: %v", got, n*size, err)
			}
			got += k
			time.Sleep(time.Second / 2) // and so never 120 s in all
		}
	})
}

// TestUnansweredClose: the peer goes on talking instead.
func TestUnansweredClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		s, dial := bubble(t, rec)
		p := dial()
		id := rec.WaitConnects(t, 1)[0]
		start := time.Now()
		if err := s.Close(t.Context(), id, gateway.CloseReplaced, "replaced"); err != nil {
			t.Fatal(err)
		}
		if r := p.wantClose(gateway.CloseReplaced); r != "replaced" {
			t.Errorf("reason is %q", r)
		}
		for {
			if _, err := p.Write(text("and another thing")); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		if e := rec.WaitDisconnect(t, id); e.Code != gateway.CloseReplaced {
			t.Errorf("disconnect says %d", e.Code)
		}
		if d := time.Since(start); d < 5*time.Second || d > 6*time.Second {
			t.Errorf("cut after %v", d)
		}
		if n := len(rec.WaitFrames(t, id, 0)); n != 0 {
			t.Errorf("%d frames were handled after the close", n)
		}
	})
}

// TestConfirmationPings is the conversation in full: pings are coalesced, and
// only the right pong confirms.
func TestConfirmationPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, obs := gatewaytest.NewRecorder(), &counting{}
		s, dial := bubble(t, rec, func(o *Options) { o.Observer = obs })
		p := dial()
		id := rec.WaitConnects(t, 1)[0]
		post := func(data string, mark uint64) {
			t.Helper()
			if _, err := s.Post(t.Context(), id, gateway.Message{Data: []byte(data), Mark: mark}); err != nil {
				t.Fatal(err)
			}
		}
		wantMarks := func(want ...uint64) {
			t.Helper()
			synctest.Wait()
			got := rec.WaitMarks(t, id, 0)
			if len(got) != len(want) {
				t.Fatalf("confirmed %v, want %v", got, want)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("confirmed %v, want %v", got, want)
				}
			}
		}
		post("no mark", 0)
		p.want(ws.OpBinary, "no mark")
		post("a", 1)
		p.want(ws.OpBinary, "a")
		first := p.wantPing()
		// While this ping is unanswered no other follows.
		post("b", 2)
		p.want(ws.OpBinary, "b")
		post("c", 3)
		p.want(ws.OpBinary, "c")
		post("d", 0)
		p.want(ws.OpBinary, "d")
		wantMarks()
		p.send(clientPong(nil), clientPong([]byte("whatever")), clientPong(append([]byte{1}, first[1:]...)), clientPong(first[:7]))
		wantMarks()
		time.Sleep(7 * time.Second)
		p.send(clientPong(first))
		second := p.wantPing() // at once
		wantMarks(1)
		obs.do(func() {
			if obs.confirmed != 1 || obs.latency != 7*time.Second {
				t.Errorf("observed %d marks, latency %v", obs.confirmed, obs.latency)
			}
		})
		p.send(clientPong(first)) // an old pong is worth nothing
		wantMarks(1)
		p.send(clientPong(second))
		wantMarks(1, 2, 3)
		// A close asks for the rest with a ping of its own.
		post("e", 5)
		p.want(ws.OpBinary, "e")
		p.wantPing()
		post("f", 4)
		if err := s.Close(t.Context(), id, gateway.CloseNormal, ""); err != nil {
			t.Fatal(err)
		}
		p.want(ws.OpBinary, "f")
		last := p.wantPing()
		p.wantClose(gateway.CloseNormal)
		p.send(clientPong(last), clientClose(gateway.CloseNormal, "")) // answers both, which RFC 6455 allows
		p.wantEOF()
		wantMarks(1, 2, 3, 5, 4)
		rec.WaitDisconnect(t, id)
	})
}

// TestNeverPongs: marks do not pile up for a peer that reads and talks but
// answers no ping.
func TestNeverPongs(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	s := newServer(t, rec)
	p := dialRaw(t, serve(t, s))
	id := rec.WaitConnects(t, 1)[0]
	go func() { _, _ = io.Copy(io.Discard, p.Conn) }()
	for i := range uint64(maxMarks) {
		if _, err := s.Post(t.Context(), id, gateway.Message{Mark: i + 1}); err != nil {
			t.Fatalf("post %d: %v", i, err)
		}
	}
	if _, err := s.Post(t.Context(), id, gateway.Message{Mark: 1 << 20}); err != gateway.ErrGone {
		t.Errorf("one mark more: %v", err)
	}
	if _, err := s.Stat(t.Context(), id); err != gateway.ErrGone {
		t.Error("not closed")
	}
}

// TestSlowReaderByBytes uses real sockets: the peer does not read, the sender
// goes on, no sender waits.
func TestSlowReaderByBytes(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "TLS"}[secure], func(t *testing.T) {
			rec, obs := gatewaytest.NewRecorder(), &counting{}
			serverTLS, clientTLS := testCert()
			s := newServer(t, rec, func(o *Options) {
				o.Observer, o.MaxBuffered, o.CloseWait = obs, 1<<20, 100*time.Millisecond
				if secure {
					o.TLS = serverTLS
				}
			})
			addr := serve(t, s)
			dial := func() *rawPeer {
				if !secure {
					return dialRaw(t, addr)
				}
				return upgraded(t, dialTLS(t, addr, clientTLS))
			}
			slow, other := dial(), dial()
			ids := rec.WaitConnects(t, 2)
			msg := gateway.Message{Data: make([]byte, 32<<10)}
			var posted, gone int
			for start := time.Now(); gone == 0; posted++ {
				if time.Since(start) > 20*time.Second || posted > 10000 {
					t.Fatalf("still open after %d posts", posted)
				}
				if _, err := s.Post(t.Context(), ids[0], msg); err == gateway.ErrGone {
					gone++
				} else if err != nil {
					t.Fatal(err)
				}
				obs.do(func() {
					if obs.buffered > 1<<20+64 {
						t.Fatalf("%d bytes are buffered", obs.buffered)
					}
				})
			}
			// Another reader is served meanwhile.
			if _, err := s.Post(t.Context(), ids[1], gateway.Message{Data: []byte("hello")}); err != nil {
				t.Fatal(err)
			}
			other.want(ws.OpBinary, "hello")
			_ = slow // it still does not read
			if e := rec.WaitDisconnect(t, ids[0]); e.Code != gateway.CloseSlowReader {
				t.Errorf("disconnect says %d", e.Code)
			}
			obs.do(func() {
				if obs.slow != 1 {
					t.Errorf("%d slow readers", obs.slow)
				}
			})
		})
	}
}

// TestSlowReaderWakesUp reads on after the bound was broken, in time to learn why.
func TestSlowReaderWakesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		s, dial := bubble(t, rec, func(o *Options) { o.MaxBuffered = 10000 })
		p := dial()
		id := rec.WaitConnects(t, 1)[0]
		n := 0
		for ; ; n++ {
			if _, err := s.Post(t.Context(), id, gateway.Message{Data: []byte(repeat(1000))}); err != nil {
				break
			}
			synctest.Wait()
		}
		if n != 9 { // 9 times 1,004 bytes
			t.Errorf("%d posts were taken", n)
		}
		time.Sleep(3 * time.Second)
		p.want(ws.OpBinary, repeat(1000)) // it was being written, and is whole
		p.wantClose(gateway.CloseSlowReader)
		p.send(clientClose(gateway.CloseSlowReader, ""))
		p.wantEOF()
	})
}

// TestPingFlood: pongs count, too.
func TestPingFlood(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	s := newServer(t, rec, func(o *Options) { o.MaxBuffered, o.CloseWait = 100<<10, 100*time.Millisecond })
	p := dialRaw(t, serve(t, s))
	id := rec.WaitConnects(t, 1)[0]
	flood := make([]byte, 0, 131*100)
	for range 100 {
		flood = append(flood, clientPing(repeat(125))...)
	}
	for !s.Gone(id) {
		if _, err := p.Write(flood); err != nil {
			break
		}
	}
	if e := rec.WaitDisconnect(t, id); e.Code != gateway.CloseSlowReader {
		t.Errorf("disconnect says %d", e.Code)
	}
}
