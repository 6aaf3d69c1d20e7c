package skald

import (
	"context"
	"fmt"

	"blindpost/shared/dialect/skald/skaldpb"
)

// AgentConfig configures an [Agent].
type AgentConfig struct {
	Config
	// URL is the relay: wss://host is enough.
	URL string
	// PublicURL goes into the pairing code, if phones reach the relay by
	// another URL; default URL.
	PublicURL string
	// Policy decides about clients that pair. Without one they stay pending until
	// Approve or Reject.
	Policy Policy
}

// Agent is the owner of a namespace: it stays connected to the relay, pairs
// clients and exchanges messages with them. All methods are safe for concurrent
// use, also from OnEvent.
type Agent struct {
	*member
	cfg AgentConfig

	// pairing is a lock, held while a pairing window is opened or closed.
	pairing chan struct{}

	mu monitor // notified when version, declared or declaredOn changes
	// version counts the changes of the authorised list; declared is the version that
	// the relay has accepted on the link declaredOn.
	version, declared uint64
	declaredOn        *link
	deciding          map[PublicKey]bool
}

var _ memberRole = (*Agent)(nil)

// NewAgent loads the agent from its store, or makes a new identity there. It
// does not connect: see Run.
func NewAgent(cfg AgentConfig) (*Agent, error) {
	setDefault(&cfg.PublicURL, cfg.URL)
	// Completed here, because phones use the URL of a pairing code unchanged.
	for _, u := range []*string{&cfg.URL, &cfg.PublicURL} {
		full, err := endpoint(*u)
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		*u = full
	}
	m, err := newMember(cfg.Config, RoleAgent)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		member:   m,
		cfg:      cfg,
		pairing:  make(chan struct{}, 1),
		deciding: make(map[PublicKey]bool),
	}
	m.role = a
	// The agent did not watch an open window while it was not running.
	if err := a.markWindowMissed(); err != nil {
		return nil, err
	}
	return a, nil
}

// Run connects, declares the authorised clients, and stays connected until ctx
// ends; then it returns nil. It gives up only if a retry cannot help: after [ErrReplaced],
// or a [RelayError] that says that the relay will never admit this identity. After any
// other error it retries with backoff and reports [Disconnected].
func (a *Agent) Run(ctx context.Context) error { return a.run(ctx) }

// Peers returns all clients that have ever paired.
func (a *Agent) Peers() []Peer {
	var peers []Peer
	for _, p := range a.ledger.view().Peers {
		peers = append(peers, p.Peer)
	}
	return peers
}

// Send encrypts a payload for an authorised client and writes it. An empty ID
// or TS is filled in. The package comment explains what nil and an error mean;
// [ErrNotConnected], [ErrTooLarge] and [ErrUnknownPeer] are among the errors. If the relay
// refuses the message, a [Fault] or [PeerOffline] event follows.
func (a *Agent) Send(ctx context.Context, client PublicKey, p Payload, live bool) error {
	return a.send(ctx, client, p, live)
}

// Approve authorises a client and waits until the relay has accepted the new list. It
// stores the decision first: after [ErrNotConnected] the decision reaches the relay with
// the next connection. It also closes the pairing window that the client used.
func (a *Agent) Approve(ctx context.Context, client PublicKey) error {
	if err := a.setStatus(client, StatusAuthorized); err != nil {
		return err
	}
	if err := a.waitDeclared(ctx, a.listChanged()); err != nil {
		return err
	}
	a.closeWindowOf(ctx, client)
	return nil
}

// Reject denies a pending client. The agent ignores later reports of it, unless it uses a
// new pairing window.
func (a *Agent) Reject(ctx context.Context, client PublicKey) error {
	if p, ok := a.ledger.peer(client); ok && p.Status != StatusPending {
		return fmt.Errorf("failed to reject %v: it is %s", client, p.Status)
	}
	if err := a.setStatus(client, StatusDenied); err != nil {
		return err
	}
	a.closeWindowOf(ctx, client)
	return nil
}

// Revoke withdraws a client's authorisation and waits until the relay has accepted the new
// list. From then on the relay neither delivers nor stores messages for it. Revoke stores
// the decision first, as Approve does.
func (a *Agent) Revoke(ctx context.Context, client PublicKey) error {
	if err := a.setStatus(client, StatusRevoked); err != nil {
		return err
	}
	return a.waitDeclared(ctx, a.listChanged())
}

func (a *Agent) setStatus(client PublicKey, status Status) error {
	return a.ledger.update(func(s *State) error {
		p := s.peer(client)
		if p == nil {
			return fmt.Errorf("%w: %v", ErrUnknownPeer, client)
		}
		p.Status = status
		return nil
	})
}

// listChanged notes that the authorised list has changed, and returns its version.
func (a *Agent) listChanged() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.mu.notify()
	return a.version
}

// declaration returns the Authorize frame and its version. It reads the version first: if
// the list changes in between, the list is newer than the version, which does no harm.
func (a *Agent) declaration() (version uint64, clients int, f *skaldpb.RelayFrame) {
	a.mu.Lock()
	version = a.version
	a.mu.Unlock()
	list := &skaldpb.Authorize{}
	for _, p := range a.ledger.view().Peers {
		if p.Status == StatusAuthorized {
			list.Clients = append(list.Clients, p.Key[:])
		}
	}
	return version, len(list.Clients), &skaldpb.RelayFrame{
		Frame: &skaldpb.RelayFrame_Authorize{Authorize: list},
	}
}

func (a *Agent) relayURL() string        { return a.cfg.URL }
func (a *Agent) namespace() NamespaceID  { return a.id.Namespace() }
func (a *Agent) auth() AuthFunc          { return AgentAuth(a.id) }
func (a *Agent) verdict(err error) error { return finalError(err) }

// opened declares the authorised list before any other frame, and again whenever it
// changes.
func (a *Agent) opened(l *link) error {
	version, clients, f := a.declaration()
	answered, err := l.start(l.ctx, f, replyAuthorizeOk)
	if err != nil {
		return err
	}
	l.spawn(func() { a.keepDeclared(l, answered, version, clients) })
	return nil
}

// keepDeclared ends the connection if the relay does not accept the list, and the next
// connection declares it again: otherwise a revoked client would stay authorised.
func (a *Agent) keepDeclared(l *link, answered <-chan answer, version uint64, clients int) {
	for {
		reply := <-answered
		if reply.err != nil {
			l.fail(fmt.Errorf("failed to declare authorised clients: %w", reply.err))
			return
		}
		l.q.push(Declared{
			Clients: clients,
			Known:   int(reply.frame.GetAuthorizeOk().GetAuthorized()),
		}, 0)
		a.mu.Lock()
		a.declaredOn, a.declared = l, version
		a.mu.notify()
		a.mu.Unlock()
		if a.mu.await(l.ctx, func() bool { return a.version > version }) != nil {
			return
		}
		var f *skaldpb.RelayFrame
		var err error
		version, clients, f = a.declaration()
		if answered, err = l.start(l.ctx, f, replyAuthorizeOk); err != nil {
			l.fail(fmt.Errorf("failed to declare authorised clients: %w", err))
			return
		}
	}
}

// waitDeclared waits until the relay has accepted a version of the list.
func (a *Agent) waitDeclared(ctx context.Context, version uint64) error {
	l := a.current()
	if l == nil {
		return ErrNotConnected
	}
	l.q.addRequests(1)
	defer l.q.addRequests(-1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	defer stop()
	err := a.mu.await(ctx, func() bool { return a.declaredOn == l && a.declared >= version })
	switch {
	case err != nil && l.ctx.Err() != nil:
		return l.gone()
	case err != nil:
		return fmt.Errorf("failed to wait for the relay: %w", err)
	}
	return nil
}

func (a *Agent) closed() {
	// If this fails, a client that pairs meanwhile is not expected and must be approved
	// by hand.
	_ = a.markWindowMissed()
}

// markWindowMissed notes that the agent was away while a pairing window was open.
func (a *Agent) markWindowMissed() error {
	return a.ledger.update(func(s *State) error {
		if !s.Window.open() || s.Window.Missed {
			return errNothing
		}
		s.Window.Missed = true
		return nil
	})
}
