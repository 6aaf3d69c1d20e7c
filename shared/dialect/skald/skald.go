// Package skald speaks the Skald relay protocol v2 on top of the core: its
// frames, its three roles, pairing, the authorised list, and its limits. What
// the comments call "section" is a section of the protocol's specification.
//
// A namespace is a group of the core. The agent is its root: the namespace
// exists as long as the agent's member does. Clients are members in the state
// pending or authorised. Member keys are Ed25519 public keys in hex.
package skald

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/relay"
)

// Path is the one endpoint, for all roles (section 2).
const Path = "/v1/ws"

// Roles, as they are logged and counted.
const (
	roleAgent   = "agent"
	roleClient  = "client"
	rolePairing = "pairing"
)

// States of a client.
const (
	statePending    = "pending"
	stateAuthorised = "authorised"
)

// Limits are those of section 10 that are Skald's own. See DefaultLimits.
type Limits struct {
	// MaxFrame is the size in bytes of the largest frame that is not a live message,
	// MaxLiveFrame that of the largest live message.
	MaxFrame     int64
	MaxLiveFrame int64
	// ChallengeTimeout is how long a connection may take to authenticate.
	ChallengeTimeout time.Duration
	// NamespaceTTL is how long a namespace lives without any connection.
	NamespaceTTL time.Duration
	// PairingTTL is the length of the pairing window that PairingStart with ttl 0
	// opens, PairingTTLMax the longest that it can ask for.
	PairingTTL    time.Duration
	PairingTTLMax time.Duration
}

// Options are what the dialect is made of.
type Options struct {
	Limits Limits
	// PushText is what a phone shows for a push. It never has content.
	PushText push.Text
}

// Dialect is the Skald protocol.
type Dialect struct {
	core   *relay.Relay
	limits atomic.Pointer[Limits]
	text   push.Text
}

var _ relay.Dialect = (*Dialect)(nil)

// New makes the dialect on a core. The caller adds it with core.Use.
func New(core *relay.Relay, o Options) *Dialect {
	d := &Dialect{core: core, text: o.PushText}
	d.limits.Store(&o.Limits)
	return d
}

// SetLimits puts new limits in force, at once.
func (d *Dialect) SetLimits(l Limits) { d.limits.Store(&l) }

func (d *Dialect) lim() *Limits { return d.limits.Load() }

// Name is "skald".
func (d *Dialect) Name() string { return "skald" }

// Serves reports whether path is the endpoint.
func (d *Dialect) Serves(path string) bool { return path == Path }

// GroupTTL is the life span of a namespace without connections (section 11).
func (d *Dialect) GroupTTL() time.Duration { return d.lim().NamespaceTTL }

func groupOf(namespace []byte) string { return "skald/" + hex.EncodeToString(namespace) }

func namespaceOf(group string) ([]byte, error) {
	const prefix = len("skald/")
	if len(group) < prefix {
		return nil, fmt.Errorf("group %q is no namespace", relay.ShortGroup(group))
	}
	return hex.DecodeString(group[prefix:])
}

// jobTimeout closes a connection that has not authenticated in time, jobLinger one that
// stays open after pairing.
const (
	jobTimeout = "timeout"
	jobLinger  = "linger"
)

// pairingLinger is how long a connection may stay open after pairing; the client
// is to close it (section 4.2).
const pairingLinger = 30 * time.Second

// Connect sends the challenge: the relay speaks first (section 4). A Connect that comes
// again sends the same challenge, because the client may have signed it already.
func (d *Dialect) Connect(ctx context.Context, c *relay.Conn, _ gateway.ConnectEvent) (gateway.ConnectResult, error) {
	if !c.Again() {
		c.Private = make([]byte, nonceSize)
		if err := d.core.Random(c.Private); err != nil {
			return gateway.ConnectResult{}, err
		}
	} else if c.Private == nil { // authenticated already
		return gateway.ConnectResult{ReadLimit: d.readLimit(c)}, nil
	}
	challenge, err := encode(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Challenge{
		Challenge: &skaldpb.Challenge{Nonce: c.Private},
	}})
	if err != nil {
		return gateway.ConnectResult{}, err
	}
	at := c.At.Add(d.lim().ChallengeTimeout)
	if err := d.core.Later(ctx, d, jobTimeout, []byte(c.ID), at); err != nil {
		return gateway.ConnectResult{}, err
	}
	return gateway.ConnectResult{
		ReadLimit: d.lim().MaxFrame,
		First:     []gateway.Message{{Data: challenge.Data}},
	}, nil
}

// Disconnected does nothing: the core has done everything.
func (d *Dialect) Disconnected(context.Context, *relay.Conn) error { return nil }

// Job closes connections that have taken too long, see jobTimeout and jobLinger.
func (d *Dialect) Job(ctx context.Context, j queue.Job) error {
	c, err := d.core.LoadConn(ctx, gateway.Conn(j.Body))
	if err != nil || c == nil {
		return err
	}
	switch j.Kind {
	case d.Name() + "." + jobTimeout:
		if c.Private == nil || c.Joined() {
			return nil // authenticated
		}
		// The limit may have been raised since the job was sent.
		if at := c.At.Add(d.lim().ChallengeTimeout); d.core.Now().Before(at) {
			return d.core.Later(ctx, d, jobTimeout, j.Body, at)
		}
		return d.refuse(ctx, c, "", codeChallengeTimeout, "no Auth within the time allowed")
	case d.Name() + "." + jobLinger:
		return d.close(ctx, c, gateway.CloseNormal, "pairing is done")
	default:
		return fmt.Errorf("job of unknown kind %q", j.Kind)
	}
}

// Presence makes a PresenceEvent (section 7).
func (d *Dialect) Presence(member string, online bool) (relay.Frame, bool) {
	pub, err := hex.DecodeString(member)
	if err != nil {
		return relay.Frame{}, false
	}
	status := skaldpb.Status_STATUS_OFFLINE
	if online {
		status = skaldpb.Status_STATUS_ONLINE
	}
	f, err := encode(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceEvent{
		PresenceEvent: &skaldpb.PresenceEvent{Pubkey: pub, Status: status},
	}})
	return f, err == nil
}

// Undelivered makes the PeerOffline for a live message (section 6.4).
func (d *Dialect) Undelivered(member string) (relay.Frame, bool) {
	pub, err := hex.DecodeString(member)
	if err != nil {
		return relay.Frame{}, false
	}
	f, err := encode(peerOffline(pub))
	return f, err == nil
}
