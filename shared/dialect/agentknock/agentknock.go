package agentknock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/relay"
)

// Options are what the dialect is made of.
type Options struct {
	Limits Limits
	// RemoteIP is the client's address of a request to the HTTP endpoints. If it is nil,
	// there is no limit per address.
	RemoteIP func(*http.Request) netip.Addr
	// Pusher wakes devices.
	Pusher push.Sender
	// Attestation is what claims have to prove; by default nothing.
	Attestation attest.Policy
}

// Dialect is the Agentknock protocol.
type Dialect struct {
	core        *relay.Relay
	limits      atomic.Pointer[Limits]
	remoteIP    func(*http.Request) netip.Addr
	pusher      push.Sender
	attestation attest.Policy
}

var (
	_ relay.Dialect    = (*Dialect)(nil)
	_ relay.Gatekeeper = (*Dialect)(nil)
	_ relay.Confirmer  = (*Dialect)(nil)
	_ relay.Replacer   = (*Dialect)(nil)
	_ relay.Keeper     = (*Dialect)(nil)
	_ relay.Cleaner    = (*Dialect)(nil)
)

// New makes the dialect on a core. The caller adds it with core.Use.
func New(core *relay.Relay, o Options) *Dialect {
	d := &Dialect{core: core, remoteIP: o.RemoteIP, pusher: o.Pusher, attestation: o.Attestation}
	d.limits.Store(&o.Limits)
	return d
}

// SetLimits puts new limits in force, at once.
func (d *Dialect) SetLimits(l Limits) { d.limits.Store(&l) }

func (d *Dialect) lim() *Limits { return d.limits.Load() }

// Name is "agentknock".
func (d *Dialect) Name() string { return name }

// GroupTTL is 0: a device without connections is kept until it is deleted.
func (d *Dialect) GroupTTL() time.Duration { return 0 }

// ReplacedCode is 1000: the protocol has no code for a connection that a newer one of the
// device has replaced.
func (d *Dialect) ReplacedCode() gateway.CloseCode { return gateway.CloseNormal }

// Presence has no frame in this protocol.
func (d *Dialect) Presence(string, bool) (relay.Frame, bool) { return relay.Frame{}, false }

// Undelivered has no frame in this protocol.
func (d *Dialect) Undelivered(string) (relay.Frame, bool) { return relay.Frame{}, false }

// Wake makes no push: this dialect does not use the mailbox of the core. See wake.go.
func (d *Dialect) Wake(*relay.Member, relay.Frame) (push.Notification, bool) {
	return push.Notification{}, false
}

// Kinds of jobs, without the name of the dialect.
const (
	jobDrain   = "drain"   // sends a device the messages that wait for it
	jobDeliver = "deliver" // posts a message again after a failure
	jobWake    = "wake"    // sends a device a push, if it is offline and messages wait
	jobEvict   = "evict"   // closes connections of a suspended or revoked client
	jobPurge   = "purge"   // deletes what is left of a deleted device
)

// JobWake is the kind of the job that pushes.
const JobWake = name + "." + jobWake

// jobBody is the body of a job. It holds no content.
type jobBody struct {
	Device     string       `json:"d,omitempty"`
	Generation string       `json:"g,omitempty"`
	Client     string       `json:"c,omitempty"`
	Request    string       `json:"r,omitempty"`
	Conn       gateway.Conn `json:"n,omitempty"`
	At         time.Time    `json:"a,omitzero"` // when Conn was opened
	Round      int          `json:"o,omitempty"`
}

func (b jobBody) keys() deviceKeys { return deviceKeys{b.Device, b.Generation} }

func (d *Dialect) later(ctx context.Context, kind string, b jobBody, at time.Time) error {
	body, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("failed to encode a job: %w", err)
	}
	return d.core.Later(ctx, d, kind, body, at)
}

// next is later for a job that belongs to b.Conn, see relay.Relay.Next.
func (d *Dialect) next(ctx context.Context, kind string, b jobBody, at time.Time) error {
	body, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("failed to encode a job: %w", err)
	}
	return d.core.Next(ctx, d, kind, b.Conn, body, at)
}

// Job runs a job.
func (d *Dialect) Job(ctx context.Context, j queue.Job) error {
	var b jobBody
	if err := json.Unmarshal(j.Body, &b); err != nil {
		return fmt.Errorf("failed to decode a job of kind %q", j.Kind)
	}
	switch j.Kind {
	case name + "." + jobDrain:
		return d.drainJob(ctx, b, j.Attempt)
	case name + "." + jobDeliver:
		return d.deliverJob(ctx, b)
	case JobWake:
		return d.wakeJob(ctx, b)
	case name + "." + jobEvict:
		return d.evictJob(ctx, b)
	case name + "." + jobPurge:
		return d.purgeJob(ctx, b)
	default:
		return fmt.Errorf("job of unknown kind %q", j.Kind)
	}
}

// hold holds the device: its handlers run one after another.
func (d *Dialect) hold(ctx context.Context, h deviceKeys) (release func(), err error) {
	return d.core.Hold(ctx, h.group(), deviceMember)
}

// device reads the member of one generation of a device, nil if that was deleted.
func (d *Dialect) device(ctx context.Context, h deviceKeys) (*relay.Member, error) {
	m, err := d.core.GetMember(ctx, h.group(), deviceMember)
	if err != nil || m == nil || m.Generation != h.generation {
		return nil, err
	}
	return m, nil
}

// post sends a frame to a connection. It reports false if the connection is gone, which
// is no error: its Disconnect follows.
func (d *Dialect) post(ctx context.Context, c gateway.Conn, f relay.Frame) (bool, error) {
	_, err := d.core.Front().Post(ctx, c, gateway.Message{Data: f.Data, Text: f.Text})
	if errors.Is(err, gateway.ErrGone) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to post: %w", err)
	}
	return true, nil
}

func (d *Dialect) reply(ctx context.Context, c *relay.Conn, f relay.Frame) error {
	_, err := d.post(ctx, c.ID, f)
	return err
}

func (d *Dialect) close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	err := d.core.Front().Close(ctx, c, code, reason)
	if err != nil && !errors.Is(err, gateway.ErrGone) {
		return fmt.Errorf("failed to close: %w", err)
	}
	return nil
}

// failAndClose sends a peer an error and closes its connection.
func (d *Dialect) failAndClose(ctx context.Context, c *relay.Conn, s scope, f *fault, code gateway.CloseCode) error {
	return errors.Join(d.reply(ctx, c, f.frame(s)), d.close(ctx, c.ID, code, f.code))
}
