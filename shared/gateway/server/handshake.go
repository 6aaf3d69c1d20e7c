package server

import (
	"crypto/tls"
	"errors"
	"runtime"
	"sync"
	"time"
)

// handshakes limits how many TLS handshakes compute at a time. A handshake is the
// most expensive request that an unauthenticated client can make. A thousand in
// parallel would each take a thousand times as long, and none would end within the
// handshake timeout. With a limit the first ones succeed under any load.
//
// A turn begins when the ClientHello is read, so that a silent peer holds none. It
// ends with the first write, which is the server's answer, or after maxWait: a
// handshake that waits for a certificate to be fetched uses no CPU.
type handshakes struct {
	turns chan struct{}
	// maxWait is how long a handshake waits for its turn. Clients do not wait much
	// longer, and a handshake for a client that has gone is wasted.
	maxWait time.Duration
}

var errBusy = errors.New("too many TLS handshakes at once")

func newHandshakes(timeout time.Duration) *handshakes {
	return &handshakes{turns: make(chan struct{}, 2*runtime.GOMAXPROCS(0)), maxWait: timeout / 2}
}

// limit makes a TLS configuration wait for turns. The listener must be a
// [corkListener].
func (h *handshakes) limit(c *tls.Config) {
	next := c.GetConfigForClient
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if k, ok := hello.Conn.(*corkConn); ok && !isACMEChallenge(hello) {
			if err := h.begin(k); err != nil {
				return nil, err
			}
		}
		if next == nil {
			return nil, nil
		}
		return next(hello)
	}
}

// isACMEChallenge recognises the TLS-ALPN-01 challenge of a certificate authority
// (RFC 8737). It needs no turn: handshakes that hold a turn may be waiting for its
// result, and it leads to no connection.
func isACMEChallenge(hello *tls.ClientHelloInfo) bool {
	return len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == "acme-tls/1"
}

// begin waits for a turn and gives it to the connection.
func (h *handshakes) begin(k *corkConn) error {
	select {
	case h.turns <- struct{}{}:
	default:
		wait := time.NewTimer(h.maxWait)
		defer wait.Stop()
		select {
		case h.turns <- struct{}{}:
		case <-wait.C:
			return errBusy
		}
	}
	k.turn.begin(func() { <-h.turns })
	k.turn.endAfter(h.maxWait)
	return nil
}

// turn is the turn of one connection's handshake.
type turn struct {
	mu    sync.Mutex
	give  func() // gives the turn back; nil if the connection holds none
	over  bool   // the connection has written or closed: it gets no turn
	timer *time.Timer
}

func (t *turn) begin(give func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		give()
		return
	}
	t.give = give
}

// end gives the turn back, if the connection holds one.
func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.give != nil {
		t.give()
		t.give = nil
	}
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

func (t *turn) endAfter(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.give != nil {
		t.timer = time.AfterFunc(d, t.end)
	}
}
