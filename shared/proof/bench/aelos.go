package bench

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"

	peer "blindpost/shared/client/aelos"
)

// vessel is a boat with viewers, who all have a session with it. What they say is
// sealed and opened as by real peers; the generator pays for that, the relay does
// not.
type vessel struct {
	// set once
	clock   time.Time // durations are since then
	conn    *conn
	viewers []*watcher
	// arrived has a token when a viewer has got something.
	arrived chan struct{}

	// owned by who publishes
	boat  *peer.Boat
	tags  []peer.Tag
	plain []byte
	out   []byte

	sent atomic.Uint64 // snapshots, each to all viewers
}

// watcher is a viewer of a vessel.
type watcher struct {
	of         *vessel
	conn       *conn
	end        *peer.Viewer // the reader's
	plain      []byte       // the reader's
	recordFrom *atomic.Int64
	received   atomic.Uint64

	latencyMu sync.Mutex
	latency   histogram
}

// aelosMachine is either end.
type aelosMachine interface {
	Receive(peer.Message) ([]peer.Message, peer.Event, error)
}

// say sends messages of a peer.
func (c *conn) say(all ...peer.Message) error {
	var out []byte
	for _, m := range all {
		op := ws.OpBinary
		if m.Text {
			op = ws.OpText
		}
		out = appendFrame(out, op, m.Data)
	}
	return c.write(out)
}

// until lets a peer receive until what is wanted has happened to it.
func until[E peer.Event](c *conn, end aelosMachine) (E, error) {
	for {
		var none E
		text, data, err := c.message()
		if err != nil {
			return none, fmt.Errorf("failed to wait for %T: %w", none, err)
		}
		replies, e, err := end.Receive(peer.Message{Text: text, Data: data})
		if err == nil {
			err = c.say(replies...)
		}
		if err != nil {
			return none, err
		}
		switch e := e.(type) {
		case E:
			return e, nil
		case peer.Refused:
			return none, fmt.Errorf("relay refused: %s", e.Code)
		case peer.Rejected:
			return none, e.Err
		}
	}
}

// tokenLife is longer than any measurement.
const tokenLife = 24 * time.Hour

// embark opens a connection of a peer and waits for its welcome.
func (f *fleet) embark(end aelosMachine, hello func(token string) peer.Message, claims peer.Claims) (*conn, error) {
	token, err := peer.Mint(f.target.AelosSecret, claims)
	if err != nil {
		return nil, err
	}
	c, err := f.dial(aelosPath)
	if err != nil {
		return nil, err
	}
	if err := c.say(hello(token)); err != nil {
		return nil, err
	}
	_, err = until[peer.Welcomed](c, end)
	return c, err
}

// vessel makes one with n viewers, whose snapshots have size bytes.
func (f *fleet) vessel(clock time.Time, name string, n, size int, recordFrom *atomic.Int64) (*vessel, error) {
	keys, err := peer.GenerateKeyPair(rand.Reader)
	if err != nil {
		return nil, err
	}
	v := &vessel{clock: clock, plain: make([]byte, size), arrived: make(chan struct{}, 1)}
	if _, err := rand.Read(v.plain); err != nil {
		return nil, fmt.Errorf("failed to draw a snapshot: %w", err)
	}
	cfg := peer.BoatConfig{Keys: keys, Random: rand.Reader}
	apps := make([]peer.KeyPair, n)
	for i := range apps {
		if apps[i], err = peer.GenerateKeyPair(rand.Reader); err != nil {
			return nil, err
		}
		cfg.Apps = append(cfg.Apps, apps[i].Public)
	}
	v.boat = peer.NewBoat(cfg)
	end := time.Now().Add(tokenLife)
	if v.conn, err = f.embark(v.boat, v.boat.Hello, peer.BoatClaims("bench", name, end)); err != nil {
		return nil, f.because(fmt.Errorf("boat: %w", err))
	}
	for i := range apps {
		w := &watcher{of: v, recordFrom: recordFrom}
		w.end = peer.NewViewer(peer.ViewerConfig{Keys: apps[i], Boat: keys.Public, Random: rand.Reader})
		if w.conn, err = f.embark(w.end, w.end.Hello, peer.ViewerClaims("bench", fmt.Sprint("user-", i), name, end)); err != nil {
			return nil, f.because(fmt.Errorf("viewer: %w", err))
		}
		if _, err = until[peer.BoatIs](w.conn, w.end); err == nil {
			if _, err = until[peer.Secured](v.conn, v.boat); err == nil {
				_, err = until[peer.Secured](w.conn, w.end)
			}
		}
		if err != nil {
			return nil, f.because(fmt.Errorf("handshake: %w", err))
		}
		w.conn.within(0)
		v.viewers = append(v.viewers, w)
	}
	v.tags = v.boat.Secured()
	v.conn.within(0)
	return v, nil
}

// launch begins to read.
func (f *fleet) launch(v *vessel) {
	f.background(func() error {
		_, data, err := v.conn.message()
		if err == nil {
			err = unasked(data)
		}
		return fmt.Errorf("boat: %w", err)
	})
	for _, w := range v.viewers {
		f.background(w.receive)
	}
}

// unasked is an error about what a boat hears that has nothing to hear.
func unasked(data []byte) error {
	c, err := peer.ParseControl(data)
	if e, ok := c.(peer.Error); ok {
		return fmt.Errorf("relay refused: %s", e.Code)
	}
	return errors.Join(fmt.Errorf("an unexpected frame has come (%T)", c), err)
}

// publish sends n snapshots at once, each to every viewer.
func (v *vessel) publish(n int, due time.Duration) error {
	v.out = v.out[:0]
	for range n {
		binary.BigEndian.PutUint64(v.plain, v.sent.Add(1))
		binary.BigEndian.PutUint64(v.plain[8:], uint64(due))
		for _, tag := range v.tags {
			var mask [4]byte
			v.out, mask = appendHeader(v.out, ws.OpBinary, peer.TaggedHeader+peer.SealedSize(len(v.plain)))
			at := len(v.out)
			var err error
			if v.out, err = v.boat.Append(v.out, peer.Snapshot, tag, v.plain); err != nil {
				return err
			}
			ws.Cipher(v.out[at:], mask, 0)
		}
	}
	return v.conn.write(v.out)
}

// receive is a viewer. A snapshot that is lost fails it: what is measured is only
// what a viewer that keeps up can see.
func (w *watcher) receive() error {
	n := uint64(0)
	for {
		text, b, err := w.conn.message()
		if err != nil {
			return fmt.Errorf("viewer: %w", err)
		}
		if text {
			c, err := peer.ParseControl(b)
			if status, ok := c.(peer.BoatStatus); ok && !status.Online {
				continue // why it is gone, the boat knows better
			}
			return errors.Join(fmt.Errorf("viewer: an unexpected frame has come (%T)", c), err)
		}
		t, plain, err := w.end.Open(w.plain[:0], b)
		if err != nil {
			return fmt.Errorf("viewer: %w", err)
		}
		w.plain = plain
		if t != peer.Snapshot || len(plain) != len(w.of.plain) {
			return errors.New("viewer: what came is no snapshot of ours")
		}
		if seq := binary.BigEndian.Uint64(plain); seq != n+1 {
			return fmt.Errorf("viewer: snapshot %d has come after %d", seq, n)
		}
		n++
		due, now := time.Duration(binary.BigEndian.Uint64(plain[8:])), time.Since(w.of.clock)
		if due >= time.Duration(w.recordFrom.Load()) {
			w.latencyMu.Lock()
			w.latency.add(now - due)
			w.latencyMu.Unlock()
		}
		w.received.Store(n)
		select {
		case w.of.arrived <- struct{}{}:
		default:
		}
	}
}

// slowest is how many snapshots all viewers have.
func (v *vessel) slowest() uint64 {
	n := v.sent.Load()
	for _, w := range v.viewers {
		n = min(n, w.received.Load())
	}
	return n
}
