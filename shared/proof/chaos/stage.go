package chaos

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"google.golang.org/protobuf/proto"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/proof/suite"
)

// stage is where one scenario plays: a relay, those who use it, and the books.
type stage struct {
	t       *testing.T
	relay   *relay
	book    *ledger
	press   *press
	secrets *suite.Secrets
	people  people
	ways    func(*member) way // if set, says who comes from where
	window  uint32            // seconds that a pairing window is open; 60 if not set

	// unconfirmed counts stored letters that have come over connections that are
	// open, and of which the relay does not know yet that they have.
	unconfirmed atomic.Int64

	mu    sync.Mutex
	byKey map[skaldclient.PublicKey]*member
	byID  map[uint32]*member
}

func (s *stage) know(m *member) *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byKey[m.PublicKey()] = m
	s.byID[m.id] = m
	return m
}

// who finds a member by its key.
func (s *stage) who(key []byte) *member {
	if len(key) != skaldclient.KeySize {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[skaldclient.PublicKey(key)]
}

// encode makes the frame of a letter.
func (s *stage) encode(l letter, size int) (ws.Frame, error) {
	s.mu.Lock()
	to := s.byID[l.to]
	s.mu.Unlock()
	ciphertext, nonce := s.press.print(l, size)
	key := to.PublicKey()
	b, err := proto.Marshal(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: &skaldpb.Message{
		Ciphertext: ciphertext, Nonce: nonce, Peer: key[:], Live: l.live,
	}}})
	if err != nil {
		return ws.Frame{}, fmt.Errorf("failed to encode a message: %w", err)
	}
	return ws.NewBinaryFrame(b), nil
}

// mustEnter is enter for those who must be let in.
func (s *stage) mustEnter(m *member, v way) *peer {
	s.t.Helper()
	p, err := s.enter(s.t.Context(), m, v)
	if err != nil {
		s.t.Fatalf("%s: %v", m, err)
	}
	return p
}

// settle founds homes, each with so many phones, all of them authorised and
// nobody connected.
func (s *stage) settle(homes, phones int) []*home {
	s.t.Helper()
	all := make([]*home, homes)
	err := s.each(homes, func(i int) error {
		h := &home{agent: s.know(s.people.newAgent())}
		agent, err := s.enter(s.t.Context(), h.agent, s.wayOf(h.agent))
		if err != nil {
			return err
		}
		defer agent.leave()
		for range phones {
			h.phones = append(h.phones, s.know(s.people.newPhone(h.agent)))
		}
		for _, ph := range h.phones {
			if _, err := s.pair(s.t.Context(), agent, ph, s.wayOf(ph)); err != nil {
				return err
			}
		}
		all[i] = h
		return agent.authorize(h.phones...)
	})
	if err != nil {
		s.t.Fatalf("failed to found homes: %v", err)
	}
	return all
}

// each calls do for 0 to n-1, some at a time, and returns the first error.
func (s *stage) each(n int, do func(i int) error) error {
	const atATime = 16
	slots := make(chan struct{}, atATime)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := do(i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = err
				}
			}
		})
	}
	wg.Wait()
	return first
}

// pair introduces a phone to its agent, with a token of its own. It is pending
// afterwards.
func (s *stage) pair(ctx context.Context, agent *peer, ph *member, v way) (skaldclient.PairingToken, error) {
	token := s.people.newToken()
	ttl := cmp.Or(s.window, 60)
	_, err := agent.request(
		&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{PairingStart: &skaldpb.PairingStart{PairingToken: token[:], Ttl: ttl}}},
		func(f *skaldpb.RelayFrame) bool { return f.GetPairingReady() != nil })
	if err != nil {
		return token, fmt.Errorf("failed to open a window: %w", err)
	}
	key := ph.PublicKey()
	paired := agent.expect(func(f *skaldpb.RelayFrame) bool {
		return bytes.Equal(f.GetClientPaired().GetClientEd25519Pub(), key[:])
	})
	if err := s.introduce(ctx, ph, token, v); err != nil {
		return token, err
	}
	if _, err := agent.await(paired); err != nil {
		return token, fmt.Errorf("the agent does not hear of it: %w", err)
	}
	return token, nil
}

// introduce lets a phone ask to be paired.
func (s *stage) introduce(ctx context.Context, ph *member, token skaldclient.PairingToken, v way) error {
	w, err := dialWire(ctx, s.relay.address, s.relay.tls, v)
	if err != nil {
		return err
	}
	defer w.abort()
	if err := s.handshake(w, ph.introduce(token)); err != nil {
		return fmt.Errorf("failed to pair: %w", err)
	}
	return nil
}

// wayOf is how a member reaches the relay.
func (s *stage) wayOf(m *member) way {
	if s.ways == nil {
		return way{}
	}
	return s.ways(m)
}

// authorize declares exactly these phones as the list.
func (p *peer) authorize(phones ...*member) error {
	list := &skaldpb.Authorize{}
	for _, ph := range phones {
		key := ph.PublicKey()
		list.Clients = append(list.Clients, key[:])
	}
	f, err := p.request(
		&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Authorize{Authorize: list}},
		func(f *skaldpb.RelayFrame) bool { return f.GetAuthorizeOk() != nil })
	if err != nil {
		return fmt.Errorf("failed to authorise: %w", err)
	}
	if n := int(f.GetAuthorizeOk().GetAuthorized()); n != len(phones) {
		return fmt.Errorf("the relay has authorised %d instead of %d", n, len(phones))
	}
	return nil
}

// eventually waits for something that nobody is told about.
func (s *stage) eventually(what string, happened func() bool) {
	s.t.Helper()
	suite.Eventually(s.t, patience, what, happened)
}

// wantAllArrived waits until nothing is missing, then says what is wrong.
func (s *stage) wantAllArrived() totals {
	s.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if n, _ := s.book.missing(); n == 0 {
			break
		}
	}
	return s.wantAudit()
}

// wantAudit fails the test for everything that is wrong in the books.
func (s *stage) wantAudit() totals {
	s.t.Helper()
	sum, faults := s.book.audit()
	for _, fault := range faults {
		s.t.Error(fault)
	}
	return sum
}

func (s *stage) init() {
	s.byKey = make(map[skaldclient.PublicKey]*member)
	s.byID = make(map[uint32]*member)
}
