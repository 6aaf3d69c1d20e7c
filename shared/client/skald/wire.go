package skald

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
)

// readLimit is the largest message from a relay in bytes: a live frame as base64, with some
// margin.
const readLimit = 1 << 20

// Limits of API Gateway, the front that carries base64 text, in bytes. Its
// frames may have 32 KiB with their header.
const (
	textFrameMax   = 30 << 10
	textMessageMax = 128 << 10
)

// closeWait bounds how long a close waits for the relay's close frame.
const closeWait = 2 * time.Second

// errBadFrame marks a message that is no frame. The connection can go on.
var errBadFrame = fmt.Errorf("%w: message is no frame", ErrProtocol)

// DialOptions say how to reach a relay. The zero value dials TCP, checks
// certificates against the system's and honours the proxy variables.
type DialOptions struct {
	// HTTPClient replaces TLSConfig and DialContext.
	HTTPClient *http.Client
	TLSConfig  *tls.Config
	// DialContext makes the transport connection, for instance one end of a
	// net.Pipe. No proxy is used with it.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// Header goes with the upgrade request.
	Header http.Header
}

func (o DialOptions) check() error {
	if o.HTTPClient != nil && (o.TLSConfig != nil || o.DialContext != nil) {
		return errors.New("dial options: HTTPClient excludes TLSConfig and DialContext")
	}
	return nil
}

func (o DialOptions) client() *http.Client {
	if o.HTTPClient != nil {
		return o.HTTPClient
	}
	t := &http.Transport{
		TLSClientConfig: o.TLSConfig,
		DialContext:     o.DialContext,
		// An upgraded connection is never reused; a refused one would stay idle.
		DisableKeepAlives: true,
	}
	if o.DialContext == nil {
		t.Proxy = http.ProxyFromEnvironment
	}
	return &http.Client{Transport: t}
}

// endpoint completes a relay URL that names a host only.
func endpoint(relayURL string) (string, error) {
	u, err := parseRelayURL(relayURL)
	if err != nil {
		return "", err
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = DefaultPath
	}
	return u.String(), nil
}

// wire is one WebSocket connection that carries frames. Frames are binary messages, unless
// the relay sends base64 in text messages, as API Gateway must. The relay sends the first
// message, which decides.
type wire struct {
	ws *websocket.Conn
	// transport is the connection below ws, nil if the HTTP client hides it.
	transport net.Conn

	// Owned by the one reader.
	modeKnown bool

	text     atomic.Bool
	lastRead atomic.Int64 // Unix nanoseconds of the last message, ping or pong
}

var _ frameCarrier = (*wire)(nil)

func dialWire(ctx context.Context, relayURL string, o DialOptions) (*wire, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	target, err := endpoint(relayURL)
	if err != nil {
		return nil, fmt.Errorf("failed to dial relay: %w", err)
	}
	w := &wire{}
	w.touch()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { w.transport = info.Conn },
	})
	ws, resp, err := websocket.Dial(ctx, target, &websocket.DialOptions{
		HTTPClient:     o.client(),
		HTTPHeader:     o.Header,
		OnPingReceived: func(context.Context, []byte) bool { w.touch(); return true },
		OnPongReceived: func(context.Context, []byte) { w.touch() },
	})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, fmt.Errorf("failed to dial relay: HTTP status %d", resp.StatusCode)
		}
		return nil, fmt.Errorf("failed to dial relay: %w", err)
	}
	ws.SetReadLimit(readLimit)
	w.ws = ws
	return w, nil
}

func (w *wire) touch() { w.lastRead.Store(time.Now().UnixNano()) }

// idle returns how long the relay has been silent.
func (w *wire) idle() time.Duration { return time.Since(time.Unix(0, w.lastRead.Load())) }

// Receive returns the next frame, and answers pings meanwhile. Only one goroutine may read.
// The end of ctx ends the connection, errBadFrame does not.
func (w *wire) Receive(ctx context.Context) (*skaldpb.RelayFrame, error) {
	kind, data, err := w.ws.Read(ctx)
	if err != nil {
		return nil, readError(err)
	}
	w.touch()
	text := kind == websocket.MessageText
	if !w.modeKnown {
		w.modeKnown = true
		w.text.Store(text)
	}
	if text != w.text.Load() {
		return nil, errBadFrame
	}
	if text {
		// A failing API Gateway integration sends JSON here.
		if data, err = base64.StdEncoding.DecodeString(string(data)); err != nil {
			return nil, errBadFrame
		}
	}
	f := &skaldpb.RelayFrame{}
	if err := proto.Unmarshal(data, f); err != nil {
		return nil, errBadFrame
	}
	return f, nil
}

// readError returns a *CloseError for a close frame of the relay.
func readError(err error) error {
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		return &CloseError{Code: gateway.CloseCode(closed.Code), Reason: closed.Reason}
	}
	return fmt.Errorf("failed to read frame: %w", err)
}

// Send writes one frame, see write.
func (w *wire) Send(ctx context.Context, f *skaldpb.RelayFrame) error {
	b, err := encodeFrame(f)
	if err != nil {
		return err
	}
	return w.write(ctx, b)
}

// write sends one encoded frame. If ctx ends during the write, the connection ends, because
// half a message cannot be undone.
func (w *wire) write(ctx context.Context, frame []byte) error {
	var err error
	if w.text.Load() {
		err = w.writeText(ctx, frame)
	} else {
		err = w.ws.Write(ctx, websocket.MessageBinary, frame)
	}
	if err != nil {
		return fmt.Errorf("failed to write frame: %w", err)
	}
	return nil
}

func (w *wire) writeText(ctx context.Context, frame []byte) error {
	size := base64.StdEncoding.EncodedLen(len(frame))
	if size > textMessageMax {
		return fmt.Errorf("%w: %d bytes as text, this relay takes %d", ErrTooLarge, size, textMessageMax)
	}
	message := base64.StdEncoding.AppendEncode(make([]byte, 0, size), frame)
	if size <= textFrameMax {
		return w.ws.Write(ctx, websocket.MessageText, message)
	}
	out, err := w.ws.Writer(ctx, websocket.MessageText)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(message, textFrameMax) {
		if _, err := out.Write(part); err != nil {
			return err
		}
	}
	return out.Close()
}

// writeRawText sends a text message that is no frame.
func (w *wire) writeRawText(ctx context.Context, s string) error {
	if err := w.ws.Write(ctx, websocket.MessageText, []byte(s)); err != nil {
		return fmt.Errorf("failed to write text: %w", err)
	}
	return nil
}

// ping waits for the pong, which only a concurrent Receive can read.
func (w *wire) ping(ctx context.Context) error { return w.ws.Ping(ctx) }

// close sends a close frame and waits up to closeWait for the answer. It may run beside
// Receive.
func (w *wire) close(code gateway.CloseCode, reason string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.ws.Close(websocket.StatusCode(code), reason)
	}()
	select {
	case <-done:
	case <-time.After(closeWait):
	}
}

// abort ends the connection at once.
func (w *wire) abort() {
	// CloseNow waits for a Close that is under way, which ends when its transport is closed.
	if w.transport != nil {
		_ = w.transport.Close()
	}
	_ = w.ws.CloseNow()
}
