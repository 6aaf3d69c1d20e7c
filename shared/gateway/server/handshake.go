package server

import (
	"crypto/tls"
	"errors"
	"runtime"
	"sync"
	"time"
)

// handshakes lets only a few TLS handshakes compute at a time. They are the dearest
// thing that a stranger can ask for. Side by side, a thousand of them would all
// end a thousand times as late, and beyond the handshake timeout none at all
// would; one after another the first ones get through, whatever comes.
//
// A turn begins when the ClientHello has been read, so that a silent peer holds
// none, and ends with the first write, which is the server's answer, or when it
// has lasted as long as others wait: a certificate that has to be fetched first
// is no work for the processor.
type handshakes struct {
	turns chan struct{}
	// patience is how long one waits for its turn. Nobody waits much longer at
	// the other end, and work for who has gone is lost.
	patience time.Duration
}

var errBusy = errors.New("too many TLS handshakes at once")

func newHandshakes(timeout time.Duration) *handshakes {
	return &handshakes{turns: make(chan struct{}, 2*runtime.GOMAXPROCS(0)), patience: timeout / 2}
}

// limit puts the turns into a TLS configuration of a listener of [corkListener].
func (h *handshakes) limit(c *tls.Config) {
	next := c.GetConfigForClient
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if k, ok := hello.Conn.(*corkConn); ok && !forAuthority(hello) {
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

// forAuthority recognises the check of a certificate authority (RFC 8737), on
// which others may be waiting who have a turn. It leads to no connection.
func forAuthority(hello *tls.ClientHelloInfo) bool {
	return len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == "acme-tls/1"
}

// begin waits for a turn and gives it to the connection.
func (h *handshakes) begin(k *corkConn) error {
	select {
	case h.turns <- struct{}{}:
	default:
		wait := time.NewTimer(h.patience)
		defer wait.Stop()
		select {
		case h.turns <- struct{}{}:
		case <-wait.C:
			return errBusy
		}
	}
	k.turn.begin(func() { <-h.turns })
	k.turn.endAfter(h.patience)
	return nil
}

// turn is what a connection holds during its handshake.
type turn struct {
	mu    sync.Mutex
	give  func() // nil: it holds none
	over  bool   // it gets none any more
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

// end gives the turn back. It is cheap when there is none.
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
