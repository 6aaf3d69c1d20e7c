package aelos

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"blindpost/shared/gateway"
)

// line is one connection, seen from its peer. What stories also call from goroutines of
// their own (dial, send, say, hangUp) fails the test and does not end it.
type line struct {
	w     *world
	id    gateway.Conn
	n     *node
	frame int // number of the last frame, for its ID

	mu      sync.Mutex
	in      []gateway.Message
	closed  *closing
	mute    bool // the peer is gone, and the front does not know
	slow    bool // droppable messages are dropped
	broken  error
	arrives bool                  // what is posted arrives though it is broken
	stuck   error                 // of each attempt to close it
	posted  func(gateway.Message) // called before a message is taken
}

type closing struct {
	code   gateway.CloseCode
	reason string
}

// dial opens a connection, on the first process unless another is named.
func (w *world) dial(node ...int) *line {
	w.t.Helper()
	l := &line{w: w, id: gateway.Conn("conn" + strconv.Itoa(w.next())), n: w.nodes[0]}
	if len(node) > 0 {
		l.n = w.nodes[node[0]]
	}
	w.front.add(l)
	res, err := l.n.core.Connect(context.Background(), gateway.ConnectEvent{
		Conn: l.id, Path: Path, RemoteIP: netip.MustParseAddr("192.0.2.1"), At: time.Now(),
	})
	if err != nil || !res.Accepted() {
		w.t.Errorf("failed to connect: %v, %v", res.Status, err)
	}
	return l
}

// event is a frame as the front gives it to the relay.
func (l *line) event(data []byte, text bool) gateway.FrameEvent {
	l.frame++
	return gateway.FrameEvent{Conn: l.id, ID: "f" + strconv.Itoa(l.frame), Data: data, Text: text, At: time.Now()}
}

// try sends a frame and returns what the handler answers.
func (l *line) try(data []byte, text bool) error {
	before := bytes.Clone(data)
	_, err := l.n.core.Frame(context.Background(), l.event(data, text))
	if !bytes.Equal(before, data) {
		l.w.t.Errorf("the relay has changed the frame")
	}
	return err
}

func (l *line) send(data []byte) {
	l.w.t.Helper()
	if err := l.try(data, false); err != nil {
		l.w.t.Errorf("failed to handle a frame: %v", err)
	}
}

func (l *line) say(format string, args ...any) {
	l.w.t.Helper()
	if err := l.try(fmt.Appendf(nil, format, args...), true); err != nil {
		l.w.t.Errorf("failed to handle a frame: %v", err)
	}
}

// hello says hello with claims.
func (l *line) hello(role string, proto int, claims jwt.MapClaims) *line {
	l.w.t.Helper()
	l.say(`{"t":"hello","proto":%d,"role":%q,"token":%q}`, proto, role, mint(l.w.t, secretA, claims))
	return l
}

// hangUp ends the connection; the front tells the relay.
func (l *line) hangUp() {
	l.w.t.Helper()
	l.end(gateway.CloseNormal)
	if err := l.n.core.Disconnect(context.Background(), gateway.DisconnectEvent{Conn: l.id, At: time.Now()}); err != nil {
		l.w.t.Errorf("failed to handle a disconnect: %v", err)
	}
}

func (l *line) end(code gateway.CloseCode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil {
		l.closed = &closing{code: code}
	}
}

// got takes what has come since it was called last; text as it is, binary in hex.
func (l *line) got() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, m := range l.in {
		if m.Text {
			out = append(out, string(m.Data))
		} else {
			out = append(out, fmt.Sprintf("%x", m.Data))
		}
	}
	l.in = nil
	return out
}

// want says what must have come.
func (l *line) want(frames ...string) {
	l.w.t.Helper()
	if got := l.got(); !slices.Equal(got, frames) {
		l.w.t.Fatalf("%s has got\n  %s\nwant\n  %s", l.id, strings.Join(got, "\n  "), strings.Join(frames, "\n  "))
	}
}

// wantClosed says how the relay must have closed.
func (l *line) wantClosed(code gateway.CloseCode) {
	l.w.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil || l.closed.code != code {
		l.w.t.Fatalf("%s: closed is %+v, want %d", l.id, l.closed, code)
	}
}

func (l *line) wantOpen() {
	l.w.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != nil {
		l.w.t.Fatalf("%s: closed with %+v", l.id, *l.closed)
	}
}
