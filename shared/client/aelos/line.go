package aelos

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/coder/websocket"
)

// DialOptions say how to reach a relay.
type DialOptions struct {
	// Client makes the request; nil is the default client.
	Client *http.Client
	// Base64 says that binary messages are sent as base64 in text messages, as on API
	// Gateway. A payload then never begins with "{", but a control frame does.
	Base64 bool
	// OnPing, if set, is called for each WebSocket ping and reports whether to answer it.
	OnPing func() bool
}

// Line is a WebSocket connection to a relay. One goroutine may receive and one
// send.
type Line struct {
	ws     *websocket.Conn
	base64 bool
}

// Dial opens a connection. If the relay refuses it with an HTTP response, Dial returns that
// too, with its body closed.
func Dial(ctx context.Context, url string, o DialOptions) (*Line, *http.Response, error) {
	opts := &websocket.DialOptions{HTTPClient: o.Client}
	if o.OnPing != nil {
		opts.OnPingReceived = func(context.Context, []byte) bool { return o.OnPing() }
	}
	ws, resp, err := websocket.Dial(ctx, url, opts)
	if err != nil {
		return nil, resp, fmt.Errorf("failed to dial: %w", err)
	}
	ws.SetReadLimit(-1)
	return &Line{ws: ws, base64: o.Base64}, resp, nil
}

// Send sends messages.
func (l *Line) Send(ctx context.Context, all ...Message) error {
	for _, m := range all {
		kind, data := websocket.MessageBinary, m.Data
		switch {
		case m.Text:
			kind = websocket.MessageText
		case l.base64:
			kind, data = websocket.MessageText, base64.StdEncoding.AppendEncode(nil, data)
		}
		if err := l.ws.Write(ctx, kind, data); err != nil {
			return fmt.Errorf("failed to send: %w", err)
		}
	}
	return nil
}

// Receive returns the next message. An error means that the connection has ended.
func (l *Line) Receive(ctx context.Context) (Message, error) {
	kind, data, err := l.ws.Read(ctx)
	switch {
	case err != nil:
		return Message{}, fmt.Errorf("failed to receive: %w", err)
	case !l.base64:
		return Message{Text: kind == websocket.MessageText, Data: data}, nil
	case kind != websocket.MessageText:
		return Message{}, errors.New("failed to receive: unexpected binary message")
	case len(data) > 0 && data[0] == '{':
		return Message{Text: true, Data: data}, nil
	}
	raw, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return Message{}, errors.New("failed to receive: neither control frame nor base64")
	}
	return Message{Data: raw}, nil
}

// Close closes the connection with a close frame.
func (l *Line) Close() error { return l.ws.Close(websocket.StatusNormalClosure, "") }

// Abort cuts the connection without a close frame.
func (l *Line) Abort() { _ = l.ws.CloseNow() }
