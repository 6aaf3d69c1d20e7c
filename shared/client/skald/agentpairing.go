package skald

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

// Lifetimes of a pairing window.
const (
	DefaultPairingTTL = 5 * time.Minute
	MaxPairingTTL     = 10 * time.Minute
)

// pairedLate is how late the relay may report a client that paired while the agent was
// away: the relay keeps an unused namespace that long.
const pairedLate = 7 * 24 * time.Hour

// maxPeers bounds the peers that a relay can make an agent store.
const maxPeers = 1000

var errTooManyPeers = fmt.Errorf("no room for more than %d clients", maxPeers)

// PairingRequest is a client that wants to be authorised.
type PairingRequest struct {
	Peer Peer
	// Expected says that this agent had a pairing window open for it. If not, the relay is
	// broken or dishonest, or another client has already used the window.
	Expected bool
}

// Decision is a policy's answer.
type Decision int

// Decisions. Ask leaves the client pending, for Approve or Reject.
const (
	Ask Decision = iota
	Allow
	Deny
)

// Policy decides about a client. It runs in its own goroutine and may take long, for
// instance to ask a human; ctx ends with Run. A relay reports a pending client again after
// each reconnect.
type Policy func(ctx context.Context, r PairingRequest) Decision

// AutoApprove allows the client of a pairing window and asks about any other. It trusts the
// relay not to use the window for a client of its own.
func AutoApprove(_ context.Context, r PairingRequest) Decision {
	if r.Expected {
		return Allow
	}
	return Ask
}

// Pairing is an open pairing window.
type Pairing struct {
	// QR is the code that the phone scans.
	QR PairingQR
	// Expires is when the relay closes the window.
	Expires time.Time
}

// open reports whether no client has used the window yet; it ignores the expiry. A nil
// window is not open.
func (w *Window) open() bool { return w != nil && w.UsedBy == PublicKey{} }

// admits reports whether the window was opened for this client.
func (w *Window) admits(client PublicKey, now time.Time) bool {
	switch {
	case w == nil:
		return false
	case !w.open():
		return w.UsedBy == client
	case w.Missed:
		return now.Before(w.Expires.Add(pairedLate))
	}
	return now.Before(w.Expires)
}

// StartPairing opens a pairing window for one client and returns the code to scan. ttl is
// rounded up to seconds; 0 means the default of 5 minutes, more than 10 minutes is an
// error. It replaces an open window, whose code becomes invalid.
func (a *Agent) StartPairing(ctx context.Context, ttl time.Duration) (Pairing, error) {
	if ttl == 0 {
		ttl = DefaultPairingTTL
	}
	if ttl < 0 || ttl > MaxPairingTTL {
		return Pairing{}, fmt.Errorf("failed to start pairing: ttl is not within 1s and %v", MaxPairingTTL)
	}
	seconds := uint32((ttl + time.Second - 1) / time.Second)
	qr := PairingQR{
		RelayURL:      a.cfg.PublicURL,
		Namespace:     a.namespace(),
		AgentKey:      a.id.PublicKey(),
		AgentExchange: a.id.ExchangeKey(),
	}
	if _, err := io.ReadFull(a.rand, qr.Token[:]); err != nil {
		return Pairing{}, fmt.Errorf("failed to draw a pairing token: %w", err)
	}
	var expires time.Time
	err := a.inPairing(ctx, func(l *link) error {
		// Stored first: the client may be reported before the answer is.
		expires = time.Now().Add(time.Duration(seconds) * time.Second)
		if err := a.setWindow(&Window{Expires: expires}); err != nil {
			return err
		}
		f, err := l.ask(ctx, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{
			PairingStart: &skaldpb.PairingStart{PairingToken: qr.Token[:], Ttl: seconds},
		}}, replyPairingReady)
		if err != nil {
			// The token was not given out, so no client can use the window.
			return errors.Join(err, a.setWindow(nil))
		}
		granted := f.GetPairingReady().GetTtl()
		if granted == 0 || granted >= seconds {
			return nil
		}
		expires = expires.Add(-time.Duration(seconds-granted) * time.Second)
		return a.ledger.update(func(s *State) error {
			if s.Window != nil {
				s.Window.Expires = expires
			}
			return nil
		})
	})
	if err != nil {
		return Pairing{}, fmt.Errorf("failed to start pairing: %w", err)
	}
	return Pairing{QR: qr, Expires: expires}, nil
}

// StopPairing closes the pairing window. A client that has already paired stays. After
// [ErrNotConnected] the window is closed on this side, and on the relay when it expires.
func (a *Agent) StopPairing(ctx context.Context) error {
	if err := a.setWindow(nil); err != nil {
		return fmt.Errorf("failed to stop pairing: %w", err)
	}
	if err := a.inPairing(ctx, func(l *link) error { return a.stopWindow(ctx, l) }); err != nil {
		return fmt.Errorf("failed to stop pairing: %w", err)
	}
	return nil
}

// closeWindowOf closes the window that a client used, unless another one was opened since.
// Errors do not matter, because the token is used up.
func (a *Agent) closeWindowOf(ctx context.Context, client PublicKey) {
	_ = a.inPairing(ctx, func(l *link) error {
		if w := a.ledger.view().Window; w == nil || w.UsedBy != client {
			return nil
		}
		return a.stopWindow(ctx, l)
	})
}

func (a *Agent) stopWindow(ctx context.Context, l *link) error {
	if err := a.setWindow(nil); err != nil {
		return err
	}
	_, err := l.ask(ctx, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStop{
		PairingStop: &skaldpb.PairingStop{},
	}}, replyPairingStopOk)
	return err
}

// inPairing runs f while it holds the pairing lock.
func (a *Agent) inPairing(ctx context.Context, f func(*link) error) error {
	select {
	case a.pairing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.pairing }()
	l := a.current()
	if l == nil {
		return ErrNotConnected
	}
	return f(l)
}

func (a *Agent) setWindow(w *Window) error {
	return a.ledger.update(func(s *State) error {
		s.Window = w
		return nil
	})
}

// clientPaired stores a client that the relay reports, and starts the decision about it.
func (a *Agent) clientPaired(l *link, f *skaldpb.ClientPaired) error {
	key, err := ParsePublicKey(f.GetClientEd25519Pub())
	if err != nil {
		return l.protocolFault(err)
	}
	exchange, err := fixed32(f.GetClientX25519Pub())
	if err != nil {
		return l.protocolFault(err)
	}
	// Fails for a key without a usable shared secret.
	if _, err := NewSession(a.id, RoleAgent, key, exchange); err != nil || key == a.id.PublicKey() {
		return l.protocolFault(errors.New("client has unusable keys"))
	}
	var request PairingRequest
	err = a.ledger.update(func(s *State) error {
		now := time.Now()
		expected := s.Window.admits(key, now)
		p := s.peer(key)
		switch {
		case p == nil && len(s.Peers) >= maxPeers:
			return errTooManyPeers
		case p == nil:
			s.Peers = append(s.Peers, PeerState{Peer: Peer{
				Key:      key,
				Exchange: exchange,
				Status:   StatusPending,
				PairedAt: time.UnixMilli(now.UnixMilli()),
			}})
			p = s.peer(key)
		case p.Exchange != exchange:
			return fmt.Errorf("%w: %v", ErrKeyChanged, key)
		case (p.Status == StatusDenied || p.Status == StatusRevoked) && !expected:
			// The relay reports again a client that was decided long ago.
			return errNothing
		case p.Status == StatusDenied || p.Status == StatusRevoked:
			p.Status = StatusPending
		}
		p.Platform = f.GetPlatform()
		if expected {
			s.Window.UsedBy = key
		}
		request = PairingRequest{Peer: p.Peer, Expected: expected}
		return nil
	})
	switch {
	case errors.Is(err, ErrKeyChanged), errors.Is(err, errTooManyPeers):
		l.q.push(Fault{Err: err}, 0)
		return nil
	case err != nil:
		return err
	}
	switch {
	case request == PairingRequest{}: // nothing was changed
		return nil
	case request.Peer.Status == StatusAuthorized && !request.Expected:
		// The list that was declared after connecting includes it.
		return nil
	}
	l.q.push(PairingRequested{request}, 0)
	a.decide(l, request)
	return nil
}

// decide asks the policy, unless it is already being asked about this client. A client that
// is authorised and has paired again needs no decision.
func (a *Agent) decide(l *link, r PairingRequest) {
	key := r.Peer.Key
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.deciding[key] || (a.cfg.Policy == nil && r.Peer.Status != StatusAuthorized) {
		return
	}
	a.deciding[key] = true
	a.tasks.Go(func() {
		defer func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.deciding, key)
		}()
		ctx := l.run
		decision := Allow
		if r.Peer.Status != StatusAuthorized {
			decision = a.cfg.Policy(ctx, r)
		}
		var err error
		switch decision {
		case Allow:
			err = a.Approve(ctx, key)
		case Deny:
			err = a.Reject(ctx, key)
		}
		// The decision is stored and reaches the relay with the next connection, so a lost
		// connection is no fault.
		if err != nil && !errors.Is(err, ErrNotConnected) && ctx.Err() == nil {
			l.q.push(Fault{Err: err}, 0)
		}
	})
}
