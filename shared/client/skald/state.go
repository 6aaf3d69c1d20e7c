package skald

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Status is the agent's decision about a client. For a client, its agent is always
// authorised.
type Status string

// The states of a peer.
const (
	// StatusPending waits for a decision.
	StatusPending Status = "pending"
	// StatusAuthorized may exchange messages.
	StatusAuthorized Status = "authorized"
	// StatusDenied was rejected at pairing.
	StatusDenied Status = "denied"
	// StatusRevoked was authorised before.
	StatusRevoked Status = "revoked"
)

func (s Status) valid() bool {
	switch s {
	case StatusPending, StatusAuthorized, StatusDenied, StatusRevoked:
		return true
	}
	return false
}

// Peer is the other side of a pairing.
type Peer struct {
	Key      PublicKey
	Exchange ExchangeKey
	// Platform is the push platform of a client; unspecified for an agent.
	Platform Platform
	Status   Status
	// PairedAt is when the peer was first seen, to the millisecond.
	PairedAt time.Time
}

// PeerState is a peer with its counters. A denied or revoked peer is kept: if it comes
// back, its session key is the same, so its counters must continue.
type PeerState struct {
	Peer
	// SendReserved is the highest counter that may have been used for sending.
	SendReserved uint64
	// ReceiveSeen is the highest counter that was accepted.
	ReceiveSeen uint64
}

// Window is a pairing window that an agent has opened. The token is not here:
// only the relay and the QR code need it.
type Window struct {
	Expires time.Time
	// Missed says that the agent was away while the window was open: the relay may report
	// the client later.
	Missed bool
	// UsedBy is the client that has used the window; zero until then.
	UsedBy PublicKey
}

// Home is the agent of a client and its relay.
type Home struct {
	RelayURL string
	Agent    PublicKey
	// Authorized says that the relay has admitted this client at least once.
	Authorized bool
}

// State is the state that must survive a restart.
type State struct {
	Role  Role
	Seed  Seed
	Peers []PeerState
	// Window is nil unless an agent has a pairing window open.
	Window *Window
	// Home is nil for an agent, and for a client that is not paired.
	Home *Home
}

// LogValue hides the seed, which a JSON log would otherwise show.
func (s State) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("%v state with %d peers", s.Role, len(s.Peers)))
}

func (s State) clone() State {
	s.Peers = slices.Clone(s.Peers)
	if s.Window != nil {
		w := *s.Window
		s.Window = &w
	}
	if s.Home != nil {
		h := *s.Home
		s.Home = &h
	}
	return s
}

// peer returns the entry of a key, or nil. It points into the state.
func (s *State) peer(key PublicKey) *PeerState {
	for i := range s.Peers {
		if s.Peers[i].Key == key {
			return &s.Peers[i]
		}
	}
	return nil
}

// Store keeps a [State]. One Agent or Client uses it at a time; calls do not
// overlap.
type Store interface {
	// Load returns what was saved last, or [ErrNoState].
	Load() (State, error)
	// Save replaces the state, entirely or not at all. When it returns nil, the new state
	// survives a crash. After an error Load may return the old or the new state.
	Save(State) error
}

// MemoryStore is a [Store] for tests and load generators. The zero value is
// empty and ready.
type MemoryStore struct {
	mu    sync.Mutex
	state *State
	saves int
}

var _ Store = (*MemoryStore)(nil)

// NewMemoryStore returns a store that holds the given state already.
func NewMemoryStore(s State) *MemoryStore {
	m := &MemoryStore{}
	_ = m.Save(s)
	return m
}

// Load implements [Store].
func (m *MemoryStore) Load() (State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state == nil {
		return State{}, ErrNoState
	}
	return m.state.clone(), nil
}

// Save implements [Store].
func (m *MemoryStore) Save(s State) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s = s.clone()
	m.state = &s
	m.saves++
	return nil
}

// Saves returns how often Save was called.
func (m *MemoryStore) Saves() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saves
}
