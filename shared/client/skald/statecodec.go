package skald

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

const stateVersion = 1

// stateDocument is the file format. It exists apart from State so that State
// itself never encodes its seed.
type stateDocument struct {
	V      int             `json:"v"`
	Role   string          `json:"role"`
	Seed   string          `json:"seed"`
	Peers  []peerDocument  `json:"peers"`
	Window *windowDocument `json:"window,omitempty"`
	Home   *homeDocument   `json:"home,omitempty"`
}

type peerDocument struct {
	Key          PublicKey   `json:"key"`
	Exchange     ExchangeKey `json:"exchange"`
	Platform     int32       `json:"platform"`
	Status       Status      `json:"status"`
	PairedAt     int64       `json:"paired_at"`
	SendReserved uint64      `json:"send_reserved"`
	ReceiveSeen  uint64      `json:"receive_seen"`
}

type windowDocument struct {
	Expires int64      `json:"expires"`
	Missed  bool       `json:"missed,omitempty"`
	UsedBy  *PublicKey `json:"used_by,omitempty"`
}

type homeDocument struct {
	RelayURL   string    `json:"relay_url"`
	Agent      PublicKey `json:"agent"`
	Authorized bool      `json:"authorized"`
}

// encodeState returns the file content. It holds the seed.
func encodeState(s State) ([]byte, error) {
	d := stateDocument{
		V:     stateVersion,
		Role:  s.Role.String(),
		Seed:  hex.EncodeToString(s.Seed[:]),
		Peers: make([]peerDocument, 0, len(s.Peers)),
		Home:  (*homeDocument)(s.Home),
	}
	for _, p := range s.Peers {
		d.Peers = append(d.Peers, peerDocument{
			Key:          p.Key,
			Exchange:     p.Exchange,
			Platform:     int32(p.Platform),
			Status:       p.Status,
			PairedAt:     p.PairedAt.UnixMilli(),
			SendReserved: p.SendReserved,
			ReceiveSeen:  p.ReceiveSeen,
		})
	}
	if w := s.Window; w != nil {
		d.Window = &windowDocument{Expires: w.Expires.UnixMilli(), Missed: w.Missed}
		if w.UsedBy != (PublicKey{}) {
			d.Window.UsedBy = &w.UsedBy
		}
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("failed to encode state: %w", err)
	}
	return append(b, '\n'), nil
}

// decodeState reads file content. It refuses unknown members, because they come from a
// newer version and the next Save would lose them.
func decodeState(b []byte) (State, error) {
	var d stateDocument
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrState, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return State{}, fmt.Errorf("%w: more after the document", ErrState)
	}
	if d.V != stateVersion {
		return State{}, fmt.Errorf("%w: version %d", ErrState, d.V)
	}
	var s State
	switch d.Role {
	case RoleAgent.String():
		s.Role = RoleAgent
	case RoleClient.String():
		s.Role = RoleClient
	default:
		return State{}, fmt.Errorf("%w: unknown role", ErrState)
	}
	seed, err := fixedHex(d.Seed)
	if err != nil {
		return State{}, fmt.Errorf("%w: seed: %w", ErrState, err)
	}
	s.Seed = seed
	for _, p := range d.Peers {
		if s.peer(p.Key) != nil {
			return State{}, fmt.Errorf("%w: peer %v comes twice", ErrState, p.Key)
		}
		if !p.Status.valid() {
			return State{}, fmt.Errorf("%w: peer %v has no known status", ErrState, p.Key)
		}
		s.Peers = append(s.Peers, PeerState{
			Peer: Peer{
				Key:      p.Key,
				Exchange: p.Exchange,
				Platform: Platform(p.Platform),
				Status:   p.Status,
				PairedAt: time.UnixMilli(p.PairedAt),
			},
			SendReserved: p.SendReserved,
			ReceiveSeen:  p.ReceiveSeen,
		})
	}
	if w := d.Window; w != nil {
		s.Window = &Window{Expires: time.UnixMilli(w.Expires), Missed: w.Missed}
		if w.UsedBy != nil {
			s.Window.UsedBy = *w.UsedBy
		}
	}
	if h := d.Home; h != nil {
		if _, err := parseRelayURL(h.RelayURL); err != nil {
			return State{}, fmt.Errorf("%w: %w", ErrState, err)
		}
		if s.peer(h.Agent) == nil {
			return State{}, fmt.Errorf("%w: the agent is not among the peers", ErrState)
		}
		s.Home = (*Home)(h)
	}
	return s, nil
}
