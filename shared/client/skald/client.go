package skald

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
)

// ClientConfig configures a [Client].
type ClientConfig struct {
	Config
	// URL, if set, is used instead of the relay URL of the pairing code.
	URL string
	// Platform and DeviceToken tell the relay how to push; default Android and
	// no token, which means no push.
	Platform    Platform
	DeviceToken string
	// PendingTimeout bounds how long Run waits, after pairing, until the agent authorises
	// the client; default: for ever. After it Run returns the relay's refusal.
	PendingTimeout time.Duration
}

// Client is a device that is paired with one agent. All methods are safe for
// concurrent use, also from OnEvent.
type Client struct {
	*member
	cfg ClientConfig

	deviceToken atomic.Value // a string
}

var _ memberRole = (*Client)(nil)

// NewClient loads the client from its store, or makes a new identity there. A new client
// must Pair before Run.
func NewClient(cfg ClientConfig) (*Client, error) {
	setDefault(&cfg.Platform, PlatformAndroid)
	if cfg.URL != "" {
		if _, err := parseRelayURL(cfg.URL); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
	}
	if cfg.PendingTimeout < 0 {
		return nil, errors.New("config: PendingTimeout is negative")
	}
	m, err := newMember(cfg.Config, RoleClient)
	if err != nil {
		return nil, err
	}
	c := &Client{member: m, cfg: cfg}
	c.SetDeviceToken(cfg.DeviceToken)
	m.role = c
	return c, nil
}

// Pair presents a scanned pairing code to the relay, once, and stores the agent. Afterwards
// Run works as soon as the agent has authorised this client. Pair replaces an earlier
// pairing, and must not be called while Run is running.
//
// Errors: a [RelayError] with [CodePairingClosed] for a used or expired code,
// [ErrKeyChanged], and errors of the network. If the connection breaks before the relay's
// answer, the code may have been used. Pair then stores the agent too, unless the client is
// paired with another one, and Run shows whether the pairing succeeded.
func (c *Client) Pair(ctx context.Context, qr PairingQR) error {
	if err := c.acquire(); err != nil {
		return err
	}
	defer c.release()
	if err := qr.check(); err != nil {
		return err
	}
	if qr.AgentKey == c.id.PublicKey() {
		return errors.New("failed to pair: the pairing code is our own")
	}
	if p, ok := c.ledger.peer(qr.AgentKey); ok && p.Exchange != qr.AgentExchange {
		return fmt.Errorf("failed to pair: %w", ErrKeyChanged)
	}
	if _, err := NewSession(c.id, RoleClient, qr.AgentKey, qr.AgentExchange); err != nil {
		return fmt.Errorf("failed to pair: %w", err)
	}
	relayURL := qr.RelayURL
	if c.cfg.URL != "" {
		relayURL = c.cfg.URL
	}
	auth := PairingAuth(c.id, qr.Namespace, qr.Token, c.token(), c.cfg.Platform)
	w, ns, answered, err := c.dial(ctx, relayURL, auth)
	if err != nil {
		home := c.ledger.view().Home
		free := home == nil || home.Agent == qr.AgentKey
		if answered && free && refusedWith(err) == "" && !errors.Is(err, ErrProtocol) {
			err = errors.Join(err, c.savePairing(qr))
		}
		return fmt.Errorf("failed to pair: %w", err)
	}
	w.close(gateway.CloseNormal, "")
	w.abort()
	if ns != qr.Namespace {
		return fmt.Errorf("failed to pair: %w: admitted to another namespace", ErrProtocol)
	}
	return c.savePairing(qr)
}

// savePairing stores the agent of a pairing code. The counters of a known agent continue.
func (c *Client) savePairing(qr PairingQR) error {
	return c.ledger.update(func(s *State) error {
		if s.peer(qr.AgentKey) == nil {
			s.Peers = append(s.Peers, PeerState{Peer: Peer{
				Key:      qr.AgentKey,
				Exchange: qr.AgentExchange,
				Status:   StatusAuthorized,
				PairedAt: time.UnixMilli(time.Now().UnixMilli()),
			}})
		}
		s.Home = &Home{RelayURL: qr.RelayURL, Agent: qr.AgentKey}
		return nil
	})
}

// Run connects and stays connected until ctx ends; then it returns nil. Right
// after pairing the relay refuses the client until the agent has authorised it; Run retries
// with backoff, as after any transient error. It gives up with [ErrNotPaired],
// [ErrRevoked], [ErrReplaced], or a [RelayError] that says that the relay will never admit
// this identity.
func (c *Client) Run(ctx context.Context) error {
	if c.ledger.view().Home == nil {
		return ErrNotPaired
	}
	return c.run(ctx)
}

// Agent returns the agent that the client is paired with.
func (c *Client) Agent() (Peer, bool) {
	home := c.ledger.view().Home
	if home == nil {
		return Peer{}, false
	}
	return c.ledger.peer(home.Agent)
}

// SetDeviceToken changes the push token. The relay gets it with the next connection; to
// send it now, call Reconnect.
func (c *Client) SetDeviceToken(token string) { c.deviceToken.Store(token) }

func (c *Client) token() string { return c.deviceToken.Load().(string) }

// Send encrypts a payload for the agent and writes it, as [Agent.Send] does.
func (c *Client) Send(ctx context.Context, p Payload, live bool) error {
	agent, ok := c.Agent()
	if !ok {
		return ErrNotPaired
	}
	return c.send(ctx, agent.Key, p, live)
}

func (c *Client) relayURL() string {
	if c.cfg.URL != "" {
		return c.cfg.URL
	}
	if home := c.ledger.view().Home; home != nil {
		return home.RelayURL
	}
	return ""
}

func (c *Client) namespace() NamespaceID {
	agent, _ := c.Agent()
	return NamespaceOf(agent.Key)
}

func (c *Client) auth() AuthFunc {
	return ClientAuth(c.id, c.namespace(), c.token(), c.cfg.Platform)
}

// opened notes that the agent has authorised us.
func (c *Client) opened(*link) error {
	return c.ledger.update(func(s *State) error {
		if s.Home.Authorized {
			return errNothing
		}
		s.Home.Authorized = true
		return nil
	})
}

func (c *Client) closed() {}

// clientPaired is for agents only.
func (c *Client) clientPaired(*link, *skaldpb.ClientPaired) error { return nil }

func (c *Client) verdict(err error) error {
	if refusedWith(err) != CodeUnauthorized {
		return finalError(err)
	}
	if home := c.ledger.view().Home; home.Authorized {
		return fmt.Errorf("%w: %w", ErrRevoked, err)
	}
	if limit := c.cfg.PendingTimeout; limit > 0 && time.Since(c.began) >= limit {
		return err
	}
	return nil
}
