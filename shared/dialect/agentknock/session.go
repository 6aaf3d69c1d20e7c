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
	// Drain is how far a device has been sent what waited for it.
	Drain drainProgress `json:"s,omitzero"`
}

// drainProgress is the state of sending what waits, see drain.go.
type drainProgress struct {
	// Greeted says that push_registration was sent, After is the last entry that was
	// looked at, CaughtUp that caught_up was sent, and Done that the device takes
	// messages as they come.
	Greeted  bool   `json:"g,omitempty"`
	After    string `json:"a,omitempty"`
	CaughtUp bool   `json:"c,omitempty"`
	Done     bool   `json:"d,omitempty"`
	// Mark is the mark of the message whose confirmation it waits for; 0: it does not.
	Mark uint64 `json:"m,omitempty"`
	// Marks counts them.
	Marks uint64 `json:"n,omitempty"`
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

// put keeps the session in the record of its connection.
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
