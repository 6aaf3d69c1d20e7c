package aelos

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// A line carries both kinds of messages both ways, as they are or, where there are
// no binary messages, as text; what is neither is an error.
func TestLine(t *testing.T) {
	type raw struct {
		kind websocket.MessageType
		data string
	}
	got := make(chan raw, 9)
	// The server says what it hears, and begins with what the query names.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		switch r.URL.RawQuery {
		case "binary":
			_ = ws.Write(r.Context(), websocket.MessageBinary, []byte("AQL/"))
		case "text":
			_ = ws.Write(r.Context(), websocket.MessageText, []byte("no base64"))
		}
		for {
			kind, data, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			got <- raw{kind, string(data)}
			_ = ws.Write(context.Background(), kind, data)
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dial := func(base64 bool, query string) *Line {
		t.Helper()
		l, _, err := Dial(ctx, "ws"+strings.TrimPrefix(server.URL, "http")+"/?"+query, DialOptions{Base64: base64})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Abort)
		return l
	}
	payload := []byte{1, 2, 0xff}
	for _, c := range []struct {
		base64 bool
		m      Message
		wire   raw
	}{
		{false, PingMessage(), raw{websocket.MessageText, `{"t":"ping"}`}},
		{false, Message{Data: payload}, raw{websocket.MessageBinary, "\x01\x02\xff"}},
		{true, PingMessage(), raw{websocket.MessageText, `{"t":"ping"}`}},
		{true, Message{Data: payload}, raw{websocket.MessageText, "AQL/"}},
	} {
		l := dial(c.base64, "")
		if err := l.Send(ctx, c.m); err != nil {
			t.Fatal(err)
		}
		if sent := <-got; sent != c.wire {
			t.Errorf("%v is sent as %v", c.m, sent)
		}
		if m, err := l.Receive(ctx); err != nil || m.Text != c.m.Text || !bytes.Equal(m.Data, c.m.Data) {
			t.Errorf("%v is received as %v, %v", c.wire, m, err)
		}
		_ = l.Close()
	}
	for _, query := range []string{"binary", "text"} {
		if m, err := dial(true, query).Receive(ctx); err == nil {
			t.Errorf("received %v", m)
		}
	}
}
