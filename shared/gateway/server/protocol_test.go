package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// echo answers each message with itself.
func echo(s **Server) *gatewaytest.Recorder {
	r := gatewaytest.NewRecorder()
	r.OnFrame = func(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
		if e.Oversize {
			return gateway.FrameResult{}, nil
		}
		_, err := (*s).Post(ctx, e.Conn, gateway.Message{Data: e.Data, Text: e.Text})
		return gateway.FrameResult{}, err
	}
	return r
}

// startEcho serves an echo server on loopback.
func startEcho(t testing.TB, change ...func(*Options)) (*Server, *gatewaytest.Recorder, func() *rawPeer) {
	var s *Server
	r := echo(&s)
	s = newServer(t, r, change...)
	addr := serve(t, s)
	t.Cleanup(func() { r.Check(t) })
	return s, r, func() *rawPeer {
		t.Helper()
		return dialRaw(t, addr)
	}
}

func TestProtocolErrorsClose(t *testing.T) {
	badUTF8 := []byte{'a', 0xff, 'b'}
	for _, c := range []struct {
		name string
		send []byte
		code gateway.CloseCode
	}{
		{"unmasked", []byte{0x81, 0x02, 'h', 'i'}, gateway.CloseProtocol},
		{"unmasked ping", []byte{0x89, 0x00}, gateway.CloseProtocol},
		{"RSV1", masked(0xc1, []byte("hi")), gateway.CloseProtocol},
		{"RSV2", masked(0xa1, []byte("hi")), gateway.CloseProtocol},
		{"RSV3", masked(0x91, []byte("hi")), gateway.CloseProtocol},
		{"RSV1 on a ping", masked(0xc9, nil), gateway.CloseProtocol},
		{"reserved data opcode", masked(0x83, []byte("hi")), gateway.CloseProtocol},
		{"reserved control opcode", masked(0x8b, nil), gateway.CloseProtocol},
		{"continuation of nothing", masked(0x80, []byte("hi")), gateway.CloseProtocol},
		{"continuation after a whole message", append(text("a"), masked(0x80, []byte("hi"))...), gateway.CloseProtocol},
		{"new message within a message", append(masked(0x01, []byte("a")), text("b")...), gateway.CloseProtocol},
		{"fragmented ping", masked(0x09, nil), gateway.CloseProtocol},
		{"long ping", masked(0x89, make([]byte, 126)), gateway.CloseProtocol},
		{"long close", clientClose(1000, repeat(124)), gateway.CloseProtocol},
		{"close with one byte", masked(0x88, []byte{3}), gateway.CloseProtocol},
		{"close 0", clientClose(0, ""), gateway.CloseProtocol},
		{"close 999", clientClose(999, ""), gateway.CloseProtocol},
		{"close 1004", clientClose(1004, ""), gateway.CloseProtocol},
		{"close 1005", clientClose(1005, ""), gateway.CloseProtocol},
		{"close 1006", clientClose(1006, ""), gateway.CloseProtocol},
		{"close 1015", clientClose(1015, ""), gateway.CloseProtocol},
		{"close 2999", clientClose(2999, ""), gateway.CloseProtocol},
		{"close 5000", clientClose(5000, ""), gateway.CloseProtocol},
		{"close reason not UTF-8", clientClose(1000, string(badUTF8)), 1007},
		{"length over 2^63", maskedHeader(0x82, 1<<63), gateway.CloseProtocol},
		{"text not UTF-8", masked(0x81, badUTF8), 1007},
		{"text cut within a character", masked(0x81, []byte("grü")[:3]), 1007},
		{"fragments not UTF-8", append(masked(0x01, []byte("a")), masked(0x80, badUTF8)...), 1007},
		{"over the limit", masked(0x82, make([]byte, 1001)), gateway.CloseTooLarge},
		{"far over the limit, header only", maskedHeader(0x82, 1<<62), gateway.CloseTooLarge},
		{"largest length there is", maskedHeader(0x82, 1<<63-1), gateway.CloseTooLarge},
		{"fragments over the limit", bytes.Join([][]byte{masked(0x02, make([]byte, 600)), masked(0x00, make([]byte, 400)), masked(0x80, []byte("x"))}, nil), gateway.CloseTooLarge},
		{"fragments over the largest length", append(masked(0x02, make([]byte, 600)), maskedHeader(0x00, 1<<63-1)...), gateway.CloseTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, rec, dial := startEcho(t, func(o *Options) { o.ReadLimit = 1000 })
			p := dial()
			// What came before is answered, what comes after is not heard.
			p.send(text("before"), c.send, text("after"))
			p.want(ws.OpText, "before")
			p.wantClose(c.code)
			id := rec.WaitConnects(t, 1)[0]
			_ = p.Close()
			if e := rec.WaitDisconnect(t, id); e.Code != c.code {
				t.Errorf("disconnect says %d %q, want %d", e.Code, e.Reason, c.code)
			}
			for _, f := range rec.WaitFrames(t, id, 1) {
				if string(f.Data) == "after" || len(f.Data) > 1000 {
					t.Errorf("handled %.20q after the error", f.Data)
				}
			}
		})
	}
}

// TestWellFormed is what a strict server must take.
func TestWellFormed(t *testing.T) {
	type answer struct {
		op      ws.OpCode
		payload string
	}
	allCodes := []gateway.CloseCode{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999}
	for _, c := range []struct {
		name string
		send [][]byte
		want []answer
	}{
		{"empty message", [][]byte{binaryMsg("")}, []answer{{ws.OpBinary, ""}}},
		{"fragments", [][]byte{masked(0x01, []byte("a")), masked(0x00, []byte("b")), masked(0x00, nil), masked(0x80, []byte("c"))}, []answer{{ws.OpText, "abc"}}},
		{"character across fragments", [][]byte{masked(0x01, []byte("ü")[:1]), masked(0x80, []byte("ü")[1:])}, []answer{{ws.OpText, "ü"}}},
		{"empty fragments", [][]byte{masked(0x02, nil), masked(0x00, nil), masked(0x80, nil)}, []answer{{ws.OpBinary, ""}}},
		{"control frames between fragments", [][]byte{masked(0x02, []byte("a")), clientPing("p"), clientPong(nil), masked(0x80, []byte("b"))},
			[]answer{{ws.OpPong, "p"}, {ws.OpBinary, "ab"}}},
		{"large fragments", [][]byte{masked(0x02, []byte(repeat(20000))), clientPing("p"), masked(0x80, []byte(repeat(20001)))},
			[]answer{{ws.OpPong, "p"}, {ws.OpBinary, repeat(40001)}}},
		{"ping of 125 bytes", [][]byte{clientPing(repeat(125))}, []answer{{ws.OpPong, repeat(125)}}},
		{"empty ping", [][]byte{clientPing("")}, []answer{{ws.OpPong, ""}}},
		{"binary that is not UTF-8", [][]byte{binaryMsg("\xff\xfe")}, []answer{{ws.OpBinary, "\xff\xfe"}}},
		{"length in more bytes than needed", [][]byte{{0x82, 0x80 | 126, 0, 1, 0, 0, 0, 0, 'x'}}, []answer{{ws.OpBinary, "x"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, dial := startEcho(t)
			whole := bytes.Join(c.send, nil)
			// In one piece, byte by byte, and in pieces around the size of the idle buffer.
			for _, step := range []int{len(whole), 1, idleBytes - 1, idleBytes, idleBytes + 1} {
				if step == 1 && len(whole) > 1000 {
					continue // as many packets
				}
				p := dial()
				for rest := whole; len(rest) > 0; {
					n := min(step, len(rest))
					p.send(rest[:n])
					rest = rest[n:]
				}
				for _, a := range c.want {
					p.want(a.op, a.payload)
				}
				_ = p.Close()
			}
		})
	}
	t.Run("close codes", func(t *testing.T) {
		_, rec, dial := startEcho(t)
		for i, code := range allCodes {
			p := dial()
			p.send(clientClose(code, "grüße"))
			p.wantClose(code)
			p.wantEOF()
			if e := rec.WaitDisconnect(t, rec.WaitConnects(t, i+1)[i]); e.Code != code || e.Reason != "grüße" {
				t.Errorf("disconnect says %d %q, want %d", e.Code, e.Reason, code)
			}
		}
	})
	t.Run("close without a code", func(t *testing.T) {
		_, rec, dial := startEcho(t)
		p := dial()
		p.send(masked(0x88, nil))
		p.wantClose(gateway.CloseNoStatus)
		p.wantEOF()
		if e := rec.WaitDisconnect(t, rec.WaitConnects(t, 1)[0]); e.Code != gateway.CloseNoStatus {
			t.Errorf("disconnect says %d", e.Code)
		}
	})
}

// TestTruncated cuts the transport at each byte of a message.
func TestTruncated(t *testing.T) {
	_, rec, dial := startEcho(t)
	whole := masked(0x82, []byte(repeat(200)))
	for i, n := range []int{0, 1, 2, 3, 4, 7, 8, 9, 100, len(whole) - 1} {
		p := dial()
		p.send(whole[:n])
		_ = p.Close()
		id := rec.WaitConnects(t, i+1)[i]
		if e := rec.WaitDisconnect(t, id); e.Code != gateway.CloseAbnormal {
			t.Errorf("after %d bytes: disconnect says %d", n, e.Code)
		}
		if n := len(rec.WaitFrames(t, id, 0)); n != 0 {
			t.Errorf("after %d bytes: a part of a message was handled", n)
		}
	}
}

// TestOversizeByAnnouncement announces too much in a fragment of
// which nothing follows.
func TestOversizeByAnnouncement(t *testing.T) {
	_, rec, dial := startEcho(t, func(o *Options) { o.ReadLimit = 1000 })
	p := dial()
	p.send(masked(0x01, []byte(repeat(600))), maskedHeader(0x00, 401))
	id := rec.WaitConnects(t, 1)[0]
	f := rec.WaitFrames(t, id, 1)[0]
	if !f.Oversize || f.Size != 1001 || !f.Text || f.Data != nil {
		t.Errorf("got %+v", f)
	}
	p.wantClose(gateway.CloseTooLarge)
	// The rest of the message is read over, so that the answer to our close is found.
	p.send([]byte(repeat(401)), clientClose(gateway.CloseTooLarge, ""))
	p.wantEOF()
	if e := rec.WaitDisconnect(t, id); e.Code != gateway.CloseTooLarge {
		t.Errorf("disconnect says %d", e.Code)
	}
}

// TestEarlyFrames sends frames together with the upgrade request.
func TestEarlyFrames(t *testing.T) {
	s, _, _ := startEcho(t)
	var want []string
	req := []byte(upgradeRequest)
	for _, n := range []int{1, 100, 5000, 40000} {
		req = append(req, text(repeat(n))...)
		want = append(want, repeat(n))
	}
	l := newPipeListener()
	serveOn(t, s, l)
	nc := l.dial()
	defer nc.Close()
	go func() { _, _ = nc.Write(req) }()
	p := &rawPeer{Conn: nc, t: t}
	p.readUpgrade()
	for _, w := range want {
		p.want(ws.OpText, w)
	}
}

func TestParseHeaderAgreesWithLibrary(t *testing.T) {
	for _, n := range []uint64{0, 1, 125, 126, 127, 65535, 65536, 1 << 40} {
		for _, first := range []byte{0x81, 0x02, 0x80, 0xf1, 0x8a} {
			b := maskedHeader(first, n)
			want, err := ws.ReadHeader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			got, size, ok := parseHeader(append(b, "payload"...))
			if !ok || size != len(b) || got != want {
				t.Errorf("%x: got %+v, want %+v", b, got, want)
			}
			for short := range b {
				if _, need, ok := parseHeader(b[:short]); ok || need <= short || need > len(b) {
					t.Errorf("%x: ok %v, need %d", b[:short], ok, need)
				}
			}
		}
	}
}

func TestClosePayload(t *testing.T) {
	long := strings.Repeat("ü", 100)
	for _, c := range []struct {
		code   gateway.CloseCode
		reason string
		want   string
	}{
		{1000, "done", "done"}, {4001, "", ""}, {1001, long, strings.Repeat("ü", 61)}, {1000, "x" + long, "x" + strings.Repeat("ü", 61)},
		{1000, "a\xffb", "a"},
	} {
		got := closePayload(c.code, c.reason)
		if binary.BigEndian.Uint16(got) != uint16(c.code) || string(got[2:]) != c.want || len(got) > maxControl {
			t.Errorf("%d %q: got %q", c.code, c.reason, got)
		}
	}
	for _, code := range []gateway.CloseCode{0, 999, 1005, 1006, 1015, 2000, 5000} {
		if got := closePayload(code, "reason"); len(got) != 0 {
			t.Errorf("%d: got %q", code, got)
		}
	}
}
