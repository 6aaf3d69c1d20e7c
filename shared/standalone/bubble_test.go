package standalone

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"blindpost/shared/push"
)

const day = 24 * time.Hour

// world is a whole relay in a synctest bubble. Its peers dial it over pipes; time
// passes only when nobody has anything to do, and what is due at a moment has
// happened when settle returns.
type world struct {
	t    *testing.T
	cfg  Config
	node *Node

	pipes  *pipes
	served chan error
	pushes *provider
	log    *logBook
	peers  []*peer
	nextIP int

	secrets [][]byte // what must not be in the log
	loud    bool     // warnings are part of the story
}

// inBubble tells a story about a relay with the limits of the specification, while
// others are told: most of the real time goes into waiting for the disk.
func inBubble(t *testing.T, story func(t *testing.T, w *world), change ...func(*Config)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, pushes: &provider{}, log: &logBook{}}
		w.cfg = Config{
			DataDir:        t.TempDir(),
			Limits:         DefaultLimits(),
			Pusher:         w.pushes,
			PushText:       push.Text{Title: "Skald", Body: "Action required"},
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Log:            slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}
		for _, f := range change {
			f(&w.cfg)
		}
		w.open()
		t.Cleanup(w.end)
		story(t, w)
	})
}

// open starts the relay, on what an earlier one has left.
func (w *world) open() {
	w.t.Helper()
	node, err := Open(w.cfg)
	if err != nil {
		w.t.Fatalf("failed to open: %v", err)
	}
	w.node, w.pipes, w.served = node, newPipes(), make(chan error, 1)
	go func(l net.Listener, served chan<- error) { served <- node.Serve(context.Background(), l) }(w.pipes, w.served)
	w.settle()
}

// shutdown ends the relay in good order.
func (w *world) shutdown(spread time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), spread+time.Minute)
	defer cancel()
	if err := w.node.Shutdown(ctx, spread); err != nil {
		w.t.Errorf("failed to shut down: %v", err)
	}
	w.gone()
}

// crash ends the relay as kill -9 does: what is committed is in the file, and
// nothing comes after it. The rest of the process is cleared away afterwards.
func (w *world) crash() {
	w.t.Helper()
	w.loud = true // what is cleared away finds the database closed
	if err := w.node.bolt.Close(context.Background()); err != nil {
		w.t.Fatalf("failed to close the database: %v", err)
	}
	for _, p := range w.peers {
		p.drop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = w.node.Server.Shutdown(ctx, 0)
	w.node.stop()
	<-w.node.swept
	_ = w.node.jobs.Close(ctx)
	w.gone()
}

func (w *world) gone() {
	w.t.Helper()
	if err := <-w.served; err != nil {
		w.t.Errorf("failed to serve: %v", err)
	}
	w.node = nil
}

// restart is a good end and a new start.
func (w *world) restart() {
	w.t.Helper()
	w.shutdown(0)
	w.open()
}

// end clears up and looks at what the relay has logged.
func (w *world) end() {
	for _, p := range w.peers {
		p.drop()
		<-p.done
	}
	if w.node != nil {
		w.settle()
		w.shutdown(0)
	}
	log := w.log.bytes()
	for _, s := range w.secrets {
		for form, s := range map[string][]byte{
			"raw": s, "in hex": []byte(hex.EncodeToString(s)), "in base64": []byte(base64.StdEncoding.EncodeToString(s)),
		} {
			if bytes.Contains(log, s) {
				w.t.Errorf("the log holds a secret of %d bytes, %s", len(s), form)
			}
		}
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"level":"ERROR"`) || (!w.loud && strings.Contains(line, `"level":"WARN"`)) {
			w.t.Errorf("the relay complains: %s", line)
		}
	}
}

// settle waits until everything has happened that happens now.
func (w *world) settle() { synctest.Wait() }

// sleep lets time pass, then settles.
func (w *world) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// secret notes what must not be logged.
func (w *world) secret(b []byte) { w.secrets = append(w.secrets, bytes.Clone(b)) }

// stored lists the storage keys of the database file of a relay that is shut
// down: all that takes space, expired or not.
func (w *world) stored() []string {
	w.t.Helper()
	db, err := bbolt.Open(filepath.Join(w.cfg.DataDir, databaseFile), 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		w.t.Fatalf("failed to open the file: %v", err)
	}
	defer db.Close()
	var keys []string
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("items")).ForEach(func(k, _ []byte) error {
			keys = append(keys, strings.ReplaceAll(string(k), "\x00", " "))
			return nil
		})
	})
	if err != nil {
		w.t.Fatalf("failed to read the file: %v", err)
	}
	return keys
}

// provider is a push provider that keeps what it is given.
type provider struct {
	delay atomic.Int64 // how long an answer takes

	mu     sync.Mutex
	pushes []sentPush
	fail   []error // answers to the next pushes
}

type sentPush struct {
	push.Notification
	at  time.Time
	err error
}

var _ push.Sender = (*provider)(nil)

func (p *provider) Send(_ context.Context, n push.Notification) error {
	time.Sleep(time.Duration(p.delay.Load()))
	p.mu.Lock()
	defer p.mu.Unlock()
	n.Payload = bytes.Clone(n.Payload)
	s := sentPush{Notification: n, at: time.Now()}
	if len(p.fail) > 0 {
		s.err, p.fail = p.fail[0], p.fail[1:]
	}
	p.pushes = append(p.pushes, s)
	return s.err
}

// failNext makes the next pushes fail.
func (p *provider) failNext(errs ...error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = append(p.fail, errs...)
}

// take returns the pushes since it was called last.
func (p *provider) take() []sentPush {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.pushes
	p.pushes = nil
	return got
}

var errProvider = errors.New("the provider is out of order")

// logBook keeps what the relay logs.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBook) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return tcpFrom("127.0.0.1") }

// dial connects as the address from; false if nobody listens any more.
func (l *pipes) dial(from string) (net.Conn, bool) {
	client, server := net.Pipe()
	select {
	case l.conns <- pipeFrom{server, tcpFrom(from)}:
		return client, true
	case <-l.closed:
		return nil, false
	}
}

// pipeFrom is a pipe with the address of a TCP connection.
type pipeFrom struct {
	net.Conn
	addr net.Addr
}

func (c pipeFrom) RemoteAddr() net.Addr { return c.addr }

func tcpFrom(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 40000} }
