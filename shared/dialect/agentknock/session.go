package agentknock

import (
	"encoding/json"
	"errors"

	"blindpost/shared/relay"
)

// session is what the dialect keeps in the record of a connection.
type session struct {
	Device     string `json:"d"`
	Generation string `json:"g"`
	// Client is empty for a device.
	Client string `json:"c,omitempty"`
	// Pairing is set for an initial pairing.
	Pairing *attempt `json:"p,omitempty"`
	// Drain is the progress of the drain of a device's connection.
	Drain drainProgress `json:"s,omitzero"`
}

// drainProgress is the state of a drain, see drain.go.
type drainProgress struct {
	Greeted  bool   `json:"g,omitempty"` // push_registration was posted
	After    string `json:"a,omitempty"` // the last entry that was handled
	CaughtUp bool   `json:"c,omitempty"` // caught_up was posted
	Done     bool   `json:"d,omitempty"` // the device takes messages as they come
	// Mark is the mark of the message whose confirmation the drain waits for; 0: none.
	Mark  uint64 `json:"m,omitempty"`
	Marks uint64 `json:"n,omitempty"` // the number of marks so far
}

// attempt is an admitted pairing attempt.
type attempt struct {
	Address string `json:"a"`
	Token   []byte `json:"t"` // hashed
}

// client is the record that the first request of the attempt creates.
func (a *attempt) client(id string) *clientRecord {
	if a == nil {
		return nil
	}
	return &clientRecord{ID: id, State: statePending, Token: a.Token, Address: a.Address, isNew: true}
}

func (s *session) keys() deviceKeys { return deviceKeys{s.Device, s.Generation} }

func (s *session) role() string {
	switch {
	case s.Client == "":
		return roleDevice
	case s.Pairing != nil:
		return rolePairing
	}
	return roleClient
}

// put puts the session into the record of its connection.
func (s *session) put(c *relay.Conn) error {
	b, err := json.Marshal(s)
	if err != nil {
		return errors.New("failed to encode a session")
	}
	c.Private = b
	return nil
}

func sessionOf(c *relay.Conn) (*session, error) {
	var s session
	if json.Unmarshal(c.Private, &s) != nil {
		return nil, errors.New("failed to decode a session")
	}
	return &s, nil
}
