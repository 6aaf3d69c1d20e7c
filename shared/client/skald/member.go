package skald

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

// errReconnect is why a connection ends after Reconnect.
var errReconnect = errors.New("reconnect was requested")

// memberRole is the part in which Agent and Client differ.
type memberRole interface {
	relayURL() string
	namespace() NamespaceID
	auth() AuthFunc
	// opened runs when the relay has admitted us, before any other frame is sent or read.
	opened(l *link) error
	// closed runs when a link that was opened has ended.
	closed()
	// clientPaired runs on the read loop. An error ends the connection.
	clientPaired(l *link, f *skaldpb.ClientPaired) error
	// verdict returns the error of Run, or nil to retry.
	verdict(err error) error
}

// member is the common part of Agent and Client, which embed it: connecting and
// reconnecting, sessions, sending and receiving.
type member struct {
	cfg    Config
	id     *Identity
	own    Role
	role   memberRole
	ledger *ledger
	rand   *lockedRand

	// writeSlot is a lock, held while a frame gets its counter, is sealed and written, so
	// that counters reach the relay in order. It outlives connections.
	writeSlot chan struct{}
	// retryNow holds one if the next wait between attempts must be skipped.
	retryNow chan struct{}
	// tasks are goroutines that outlive a link, but not Run.
	tasks sync.WaitGroup

	// began is when Run began; owned by it.
	began time.Time

	mu       monitor // notified when there is a new link
	running  bool
	queue    *eventQueue // nil unless Run is at work
	link     *link
	sessions map[PublicKey]*Session
}

// newMember loads the state, or makes a new identity.
func newMember(cfg Config, own Role) (*member, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &member{
		cfg:       cfg,
		own:       own,
		rand:      &lockedRand{r: cfg.Rand},
		writeSlot: make(chan struct{}, 1),
		retryNow:  make(chan struct{}, 1),
		sessions:  make(map[PublicKey]*Session),
	}
	state, err := cfg.Store.Load()
	if errors.Is(err, ErrNoState) {
		state, err = m.newState()
	}
	if err != nil {
		return nil, fmt.Errorf("failed to load state: %w", err)
	}
	if state.Role != own {
		return nil, fmt.Errorf("%w: it belongs to a %v, not to a %v", ErrState, state.Role, own)
	}
	if m.id, err = NewIdentity(state.Seed); err != nil {
		return nil, err
	}
	m.ledger = newLedger(cfg.Store, state)
	return m, nil
}

func (m *member) newState() (State, error) {
	id, err := GenerateIdentity(m.rand)
	if err != nil {
		return State{}, err
	}
	s := State{Role: m.own, Seed: id.Seed()}
	return s, m.cfg.Store.Save(s)
}

// Identity returns the identity that is kept in the store.
func (m *member) Identity() *Identity { return m.id }

// acquire excludes a second Run or Pair.
func (m *member) acquire() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running {
		return ErrRunning
	}
	m.running = true
	return nil
}

func (m *member) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = false
}

// run connects and reconnects until ctx ends (nil) or a retry cannot help.
func (m *member) run(ctx context.Context) error {
	if err := m.acquire(); err != nil {
		return err
	}
	defer m.release()
	m.began = time.Now()
	q := &eventQueue{limit: m.cfg.QueueSize}
	var dispatcher sync.WaitGroup
	dispatcher.Go(func() { q.dispatch(func(e Event) { m.cfg.OnEvent(ctx, e) }) })
	m.setQueue(q)
	err := m.keepConnected(ctx, q)
	m.tasks.Wait()
	m.setQueue(nil)
	q.close()
	dispatcher.Wait()
	return err
}

func (m *member) setQueue(q *eventQueue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = q
}

// Flush waits until OnEvent has returned for all events so far. It must not be called
// from OnEvent.
func (m *member) Flush(ctx context.Context) error {
	b := make(barrier)
	m.mu.Lock()
	if m.queue == nil {
		m.mu.Unlock()
		return nil
	}
	// Under the lock: a queue that is still set here is not closed yet.
	m.queue.push(b, 0)
	m.mu.Unlock()
	select {
	case <-b:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("failed to wait for events: %w", context.Cause(ctx))
	}
}

func (m *member) keepConnected(ctx context.Context, q *eventQueue) error {
	failures := 0
	for {
		connected, lasted, err := m.connect(ctx, q)
		if ctx.Err() != nil {
			q.push(Disconnected{WasConnected: connected, Final: true}, 0)
			return nil
		}
		if final := m.role.verdict(err); final != nil {
			q.push(Disconnected{Err: final, WasConnected: connected, Final: true}, 0)
			return final
		}
		if lasted >= m.cfg.StableAfter || errors.Is(err, errReconnect) {
			failures = 0
		}
		failures++
		delay := m.cfg.Backoff.Delay(failures, m.rand.fraction())
		q.push(Disconnected{Err: err, WasConnected: connected, RetryIn: delay}, 0)
		if m.pause(ctx, delay) {
			failures = 0
		}
	}
}

// pause waits between two attempts. It reports true if retryNow ended the wait.
func (m *member) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-m.retryNow:
		return true
	}
	return false
}

// connect opens one connection and serves it until its end.
func (m *member) connect(ctx context.Context, q *eventQueue) (connected bool, lasted time.Duration, err error) {
	w, ns, _, err := m.dial(ctx, m.role.relayURL(), m.role.auth())
	if err != nil {
		return false, 0, err
	}
	if ns != m.role.namespace() {
		w.abort()
		return false, 0, fmt.Errorf("%w: admitted to another namespace", ErrProtocol)
	}
	l := newLink(ctx, m, w, q)
	stop := context.AfterFunc(ctx, func() { l.fail(context.Cause(ctx)) })
	err = m.role.opened(l)
	stop()
	if err != nil {
		l.end(err)
		return false, 0, context.Cause(l.ctx)
	}
	since := time.Now()
	m.setLink(l)
	q.push(Connected{Namespace: ns}, 0)
	err = l.serve(ctx)
	m.setLink(nil)
	l.end(err)
	m.role.closed()
	return true, time.Since(since), err
}

// dial opens a connection and authenticates. answered is as in handshake.
func (m *member) dial(ctx context.Context, relayURL string, auth AuthFunc) (w *wire, ns NamespaceID, answered bool, err error) {
	dialCtx, cancel := context.WithTimeout(ctx, m.cfg.DialTimeout)
	defer cancel()
	if w, err = dialWire(dialCtx, relayURL, m.cfg.Dial); err != nil {
		return nil, ns, false, err
	}
	authCtx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if ns, answered, err = handshake(authCtx, w, auth); err != nil {
		w.abort()
		return nil, ns, answered, err
	}
	return w, ns, answered, nil
}

func (m *member) setLink(l *link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.link = l
	m.mu.notify()
}

// dropLink removes a link that is about to end.
func (m *member) dropLink(l *link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.link == l {
		m.link = nil // without a notification, as callers only wait for the next link
	}
}

// current returns the link, nil if there is none.
func (m *member) current() *link {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.link
}

// WaitConnected waits until Run is connected.
func (m *member) WaitConnected(ctx context.Context) error {
	if err := m.mu.await(ctx, func() bool { return m.link != nil }); err != nil {
		return fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	return nil
}

// Reconnect drops the connection, if there is one, and connects at once: for an app that
// comes to the foreground.
func (m *member) Reconnect() {
	select {
	case m.retryNow <- struct{}{}:
	default:
	}
	if l := m.current(); l != nil {
		l.fail(errReconnect)
	}
}
