package skald

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
)

// maxQR is the largest pairing code in bytes; the largest QR symbol holds less.
const maxQR = 4096

const qrVersion = 1

// PairingQR is the code that a phone scans.
type PairingQR struct {
	// RelayURL is the relay's WebSocket endpoint (wss, or ws for a local relay).
	RelayURL      string
	Namespace     NamespaceID
	AgentKey      PublicKey
	AgentExchange ExchangeKey
	Token         PairingToken
}

// qrDocument is the JSON document; the order of the fields is that of the members.
type qrDocument struct {
	V             int    `json:"v"`
	RelayURL      string `json:"relay_url"`
	Namespace     string `json:"namespace_id"`
	AgentKey      string `json:"agent_ed25519_pub"`
	AgentExchange string `json:"agent_x25519_pub"`
	Token         string `json:"pairing_token"`
}

// Marshal returns the JSON document for the QR code. It holds the pairing
// token: show it, do not log it.
func (q PairingQR) Marshal() ([]byte, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(qrDocument{
		V:             qrVersion,
		RelayURL:      q.RelayURL,
		Namespace:     q.Namespace.Hex(),
		AgentKey:      q.AgentKey.Hex(),
		AgentExchange: q.AgentExchange.Hex(),
		Token:         fmt.Sprintf("%x", [KeySize]byte(q.Token)),
	})
	if err != nil {
		return nil, fmt.Errorf("failed to encode pairing code: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// ParsePairingQR reads a scanned document. Every member must be present once and valid, and
// the namespace must belong to the agent's key. As the protocol requires, it ignores
// unknown members and accepts upper-case hexadecimal digits.
func ParsePairingQR(doc []byte) (PairingQR, error) {
	if len(doc) == 0 || len(doc) > maxQR {
		return PairingQR{}, fmt.Errorf("failed to read pairing code: %d bytes", len(doc))
	}
	var q PairingQR
	var version json.RawMessage
	key32 := func(value json.RawMessage, to *[KeySize]byte) error {
		var s string
		if err := jsonString(value, &s); err != nil {
			return err
		}
		return unhex(to, []byte(s))
	}
	missing := map[string]bool{"v": true, "relay_url": true, "namespace_id": true,
		"agent_ed25519_pub": true, "agent_x25519_pub": true, "pairing_token": true}
	err := eachMember(doc, func(name string, value json.RawMessage) error {
		delete(missing, name)
		var err error
		switch name {
		case "v":
			version = value
		case "relay_url":
			err = jsonString(value, &q.RelayURL)
		case "namespace_id":
			err = key32(value, (*[KeySize]byte)(&q.Namespace))
		case "agent_ed25519_pub":
			err = key32(value, (*[KeySize]byte)(&q.AgentKey))
		case "agent_x25519_pub":
			err = key32(value, (*[KeySize]byte)(&q.AgentExchange))
		case "pairing_token":
			err = key32(value, (*[KeySize]byte)(&q.Token))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return PairingQR{}, fmt.Errorf("failed to read pairing code: %w", err)
	case len(missing) > 0:
		return PairingQR{}, fmt.Errorf("failed to read pairing code: %d members are missing", len(missing))
	case string(version) != fmt.Sprint(qrVersion):
		return PairingQR{}, fmt.Errorf("failed to read pairing code: version is not %d", qrVersion)
	}
	if err := q.check(); err != nil {
		return PairingQR{}, err
	}
	return q, nil
}

func (q PairingQR) check() error {
	if _, err := parseRelayURL(q.RelayURL); err != nil {
		return fmt.Errorf("failed to check pairing code: %w", err)
	}
	if q.Namespace != NamespaceOf(q.AgentKey) {
		return errors.New("failed to check pairing code: namespace does not belong to the agent's key")
	}
	return nil
}

// String hides the token.
func (q PairingQR) String() string {
	return fmt.Sprintf("pairing code of agent %v", q.AgentKey)
}

// parseRelayURL does not quote the URL in errors, as it may hold a password.
func parseRelayURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("relay URL does not parse")
	case u.Scheme != "wss" && u.Scheme != "ws":
		return nil, errors.New("relay URL is not wss or ws")
	case u.Host == "":
		return nil, errors.New("relay URL has no host")
	case u.User != nil:
		return nil, errors.New("relay URL has a user name")
	case u.Fragment != "":
		return nil, errors.New("relay URL has a fragment")
	}
	return u, nil
}
