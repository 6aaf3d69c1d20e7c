package chaos

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

// household is an agent whose phones come and go: each round it pairs a new
// phone, authorises it, talks to it, and revokes it. Each step is tried again
// until the relay has said that it is done; from then on it holds, whatever
// happens to the relay.
type household struct {
	s     *stage
	agent *member
	stay  *member // a phone that stays authorised all the time
	size  int

	conn   *peer
	last   error // of what was tried
	rounds atomic.Int64
}

// insist does something with a connection of the agent, again and again until it
// works. It reports false when ctx has ended before.
func (h *household) insist(ctx context.Context, do func(agent *peer) error) bool {
	for ctx.Err() == nil {
		err := h.try(ctx, do)
		if err == nil {
			return true
		}
		if h.conn != nil {
			h.conn.abort()
			h.conn = nil
		}
		if ctx.Err() == nil {
			h.last = err
			h.s.judge(h.agent, err, nil)
		}
		every(ctx, 20*time.Millisecond)
	}
	return false
}

func (h *household) try(ctx context.Context, do func(agent *peer) error) error {
	if h.conn == nil {
		conn, err := h.s.enter(ctx, h.agent, way{})
		if err != nil {
			return err
		}
		h.conn = conn
	}
	return do(h.conn)
}

// visit is a connection of a phone that takes what is there: it stays until
// everything that was accepted for it before has arrived.
func (h *household) visit(ctx context.Context, phone *member) error {
	p, err := h.s.enter(ctx, phone, way{})
	if err != nil {
		return err
	}
	defer p.leave()
	// Until the mailbox is empty, the relay answers each ping with more; the
	// barrier is then behind all of it.
	for {
		before := h.s.book.arrivals.Load()
		if _, err := p.barrier(); err != nil {
			return err
		}
		if h.s.book.arrivedAt(phone.id) {
			return nil
		}
		if h.s.book.arrivals.Load() == before {
			time.Sleep(time.Millisecond)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// round does all of it once. It reports false when ctx has ended before.
func (h *household) round(ctx context.Context) bool {
	phone := h.s.know(h.s.people.newPhone(h.agent))
	wasRevoked := false
	var token skaldclient.PairingToken
	steps := []func(agent *peer) error{
		func(agent *peer) (err error) {
			token, err = h.s.pair(ctx, agent, phone, way{})
			return err
		},
		func(*peer) error { return h.usedUp(ctx, token) },
		func(*peer) error { return h.refused(ctx, phone) }, // still pending
		func(agent *peer) error { return agent.authorize(h.stay, phone) },
		func(agent *peer) error { return h.write(agent, phone) },
		func(*peer) error { return h.visit(ctx, phone) },
		func(agent *peer) error { return h.write(agent, h.stay) },
		func(agent *peer) error { return h.write(agent, phone) }, // what revocation takes away
		func(agent *peer) error {
			if !wasRevoked {
				wasRevoked = true // from here on the relay may drop what waits
				h.s.book.forget(phone.id)
			}
			return agent.authorize(h.stay)
		},
		func(*peer) error { return h.refused(ctx, phone) },
		func(*peer) error { return h.visit(ctx, h.stay) },
	}
	for _, step := range steps {
		if !h.insist(ctx, step) {
			return false
		}
	}
	h.rounds.Add(1)
	return true
}

// write sends some stored letters.
func (h *household) write(agent *peer, to *member) error {
	agent.mu.Lock()
	before := agent.refused
	agent.mu.Unlock()
	var letters []letter
	for range 4 {
		letters = append(letters, h.s.book.write(h.agent.id, to.id, false))
	}
	if err := agent.post(h.size, letters...); err != nil {
		return err
	}
	refused, err := agent.barrier()
	if err != nil {
		return err
	}
	if refused == before {
		h.s.book.accept(letters...)
	}
	return nil
}

// refused makes sure that a phone is not let in.
func (h *household) refused(ctx context.Context, phone *member) error {
	p, err := h.s.enter(ctx, phone, way{})
	if err == nil {
		p.abort()
		h.s.book.blame("%s was let in without being authorised", phone)
		return nil
	}
	var refusal *authError
	if errors.As(err, &refusal) && refusal.code == "unauthorized" {
		return nil
	}
	return err
}

// usedUp makes sure that a token that has paired a phone pairs no other.
func (h *household) usedUp(ctx context.Context, token skaldclient.PairingToken) error {
	stranger := h.s.people.newPhone(h.agent)
	err := h.s.introduce(ctx, stranger, token, way{})
	var refusal *authError
	switch {
	case err == nil:
		h.s.book.blame("a pairing token of %s has paired two phones", h.agent)
	case errors.As(err, &refusal) && refusal.code == "pairing_closed":
	default:
		return err
	}
	return nil
}

// live goes on, round after round, until stop is closed and the last round is
// finished; then it goes home.
func (h *household) live(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(h.s.t.Context())
	defer cancel()
	go func() {
		select {
		case <-stop:
			time.AfterFunc(patience, cancel)
		case <-ctx.Done():
		}
	}()
	for {
		select {
		case <-stop:
			h.goHome()
			return
		default:
		}
		if !h.round(ctx) {
			h.s.book.blame("the household of %s does not get anything done any more: %v", h.agent, h.last)
			return
		}
	}
}

// goHome ends everything in order: the phone that stays gets what is left for it.
func (h *household) goHome() {
	h.s.t.Helper()
	if h.conn != nil {
		h.conn.leave()
		h.conn = nil
	}
	if err := h.visit(h.s.t.Context(), h.stay); err != nil {
		h.s.t.Errorf("%s: %v", h.stay, err)
	}
}

// households founds some.
func (s *stage) households(n, size int) []*household {
	s.t.Helper()
	var all []*household
	for _, home := range s.settle(n, 1) {
		all = append(all, &household{s: s, agent: home.agent, stay: home.phones[0], size: size})
	}
	return all
}
