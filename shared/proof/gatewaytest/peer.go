package gatewaytest

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/coder/websocket"

	"blindpost/shared/gateway"
)

// peer is the client side of one connection.
type peer struct {
	t      *testing.T
	ws     *websocket.Conn
	ctx    context.Context
	base64 bool
}

// dial opens a connection that must be accepted, and returns its id.
func (s *suite) dial(pathAndQuery string) (*peer, gateway.Conn) {
	s.Helper()
	before := len(s.rec.WaitConnects(s.T, 0))
	p := s.dialOnly(pathAndQuery)
	return p, s.rec.WaitConnects(s.T, before+1)[before]
}

// dialOnly is dial for tests that know the id otherwise.
func (s *suite) dialOnly(pathAndQuery string) *peer {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.Cleanup(cancel)
	ws, _, err := websocket.Dial(ctx, s.URL+pathAndQuery, s.dialOptions())
	if err != nil {
		s.Fatalf("failed to dial: %v", err)
	}
	ws.SetReadLimit(-1)
	s.Cleanup(func() { _ = ws.CloseNow() })
	return &peer{t: s.T, ws: ws, ctx: ctx, base64: s.Base64}
}

// dialRefused expects a refusal and returns it with its body.
func (s *suite) dialRefused(pathAndQuery string) (*http.Response, string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, res, err := websocket.Dial(ctx, s.URL+pathAndQuery, s.dialOptions())
	if err == nil {
		_ = ws.CloseNow()
		s.Fatal("connection was accepted")
	}
	if res == nil {
		s.Fatalf("no HTTP answer: %v", err)
	}
	body, _ := io.ReadAll(res.Body) // the client library keeps the first KB
	return res, string(body)
}

func (p *peer) send(text bool, data []byte) {
	p.t.Helper()
	if err := p.trySend(text, data); err != nil {
		p.t.Fatalf("failed to send: %v", err)
	}
}

func (p *peer) trySend(text bool, data []byte) error {
	kind := websocket.MessageBinary
	switch {
	case text:
		kind = websocket.MessageText
	case p.base64:
		kind, data = websocket.MessageText, base64.StdEncoding.AppendEncode(nil, data)
	}
	return p.ws.Write(p.ctx, kind, data)
}

// read returns the next message; binary says that it must have come as binary
// (or as what stands for it).
func (p *peer) read() (text bool, data []byte) {
	p.t.Helper()
	kind, data, err := p.ws.Read(p.ctx)
	if err != nil {
		p.t.Fatalf("failed to read: %v", err)
	}
	return kind == websocket.MessageText, data
}

// want expects the next message.
func (p *peer) want(text bool, data string) {
	p.t.Helper()
	gotText, got := p.read()
	if !text && p.base64 {
		gotText = !gotText
		got, _ = base64.StdEncoding.AppendDecode(nil, got) // a wrong one differs
	}
	if gotText != text || string(got) != data {
		p.t.Fatalf("got text=%v %.40q (%d bytes), want text=%v %.40q (%d bytes)", gotText, got, len(got), text, data, len(data))
	}
}

// wantClose expects the end of the connection and returns what the close frame
// said.
func (p *peer) wantClose() websocket.CloseError {
	p.t.Helper()
	_, data, err := p.ws.Read(p.ctx)
	if err == nil {
		p.t.Fatalf("got %.40q, want a close frame", data)
	}
	var ce websocket.CloseError
	if !errors.As(err, &ce) && p.ctx.Err() != nil {
		p.t.Fatal("the connection was not closed")
	}
	return ce
}

// readOn keeps reading in the background, so that pings are answered.
func (p *peer) readOn() {
	go func() {
		for {
			if _, _, err := p.ws.Read(p.ctx); err != nil {
				return
			}
		}
	}()
}
