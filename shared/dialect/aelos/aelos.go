// Package aelos speaks the Aelos relay protocol, versions 1 and 2, on top of the
// core: admission tokens, the control frames, and payload frames that it forwards
// by a tag of four bytes. What the comments call "section" is a section of the
// protocol's specification.
//
// # One item decides
//
// A boat and its viewers are a group of the core without members. Frames are never
// stored, so there is no mailbox, and all state fits into one item, the roster: the
// boat's connection, each viewer's tag and connection, and what each of them was told
// last. A handler changes the roster with a conditional write, and then brings all
// peers up to date (see settle.go). The roster alone says what to tell them, whatever
// crashed or came twice before.
//
// # What holds
//
//   - A tag belongs to one connection. No other connection gets it as long as a boat
//     may remember it. So a frame may be late, but it cannot reach the wrong viewer.
//   - The boat is told of viewers in the order in which they attach and detach, of each
//     at least once, and always with the right count. It gets no frame of a viewer before
//     it was told of the viewer; frames under way may still come after it was told to
//     forget the viewer.
//   - A viewer gets welcome first, then boat-status, then boat-status at every change.
//   - The relay reads the type and the tag of a payload frame and nothing else.
//   - The roster is deleted with the last connection, except for tags that a boat has to
//     forget when it connects again; see forgotten.go.
package aelos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/relay"
)

// Path is the endpoint, for both roles. The operator may set one more.
const Path = "/v1/aelos"

// Partition is the prefix of the partitions of this dialect. They may live in a
// table that forgets them on restart, when the connections are gone too.
const Partition = name + "/"

const name = "aelos"

// Roles.
const (
	roleBoat   = "boat"
	roleViewer = "viewer"
)

// Limits are those of section 2, and rates of our own. See DefaultLimits.
type Limits struct {
	// MaxFrame is the largest frame in bytes, as it comes in.
	MaxFrame int64
	// MaxViewers is the number of viewers of one boat.
	MaxViewers int64
	// HelloTimeout is how long a connection may take to say hello.
	HelloTimeout time.Duration
	// Leeway is how long a token is accepted after it has expired, and before it is
	// valid, for minters whose clock is off.
	Leeway time.Duration
	// BoatFrames is the number of frames of one boat per minute, ViewerFrames that of
	// one viewer without its commands, Commands that of its commands; 0: no limit.
	BoatFrames   int64
	ViewerFrames int64
	Commands     int64
	// CommandBytes is how many bytes of commands and identifies one user may send to a
	// boat in a minute; 0: no limit.
	CommandBytes int64
	// MaxHandshake is the largest hs1 or hs2 in bytes; 0: MaxFrame.
	MaxHandshake int64
	// Handshakes is the number of hs1 that reach a boat per minute, from all viewers
	// together; one user may send a quarter of them. The hs2 of the boat do not count as
	// its frames. 0: no limit.
	Handshakes int64
	// MaxViewersPerSub is how many viewers of a boat may have the same claim sub, and
	// so be one user; 0: no limit.
	MaxViewersPerSub int64
	// MaxTokenLife is how far ahead a token may expire; 0: no limit.
	MaxTokenLife time.Duration
}

// Options are what the dialect is made of. Secrets is required.
type Options struct {
	Limits Limits
	// Secrets returns the secrets that tokens may be signed with: that of the minter,
	// and during a rotation one more; see CheckSecrets.
	Secrets func(ctx context.Context) ([]string, error)
	// Path is an endpoint besides the constant Path; "" for none.
	Path string
	// Controller is how a token says that a viewer may send commands; the zero value
	// is DefaultController.
	Controller Controller
}

// Dialect is the Aelos protocol.
type Dialect struct {
	core       *relay.Relay
	limits     atomic.Pointer[Limits]
	secrets    func(context.Context) ([]string, error)
	path       string
	controller Controller
	rates      *rates
	cache      rosterCache
}

var (
	_ relay.Dialect      = (*Dialect)(nil)
	_ relay.GroupSweeper = (*Dialect)(nil)
)

// New makes the dialect on a core. The caller adds it with core.Use.
func New(core *relay.Relay, o Options) *Dialect {
	d := &Dialect{core: core, secrets: o.Secrets, path: o.Path, controller: o.Controller, rates: newRates()}
	if d.controller == (Controller{}) {
		d.controller = DefaultController
	}
	d.limits.Store(&o.Limits)
	return d
}

// SetLimits puts new limits in force, at once.
func (d *Dialect) SetLimits(l Limits) { d.limits.Store(&l) }

func (d *Dialect) lim() *Limits { return d.limits.Load() }

// Name is "aelos".
func (d *Dialect) Name() string { return name }

// Serves reports whether path is an endpoint.
func (d *Dialect) Serves(path string) bool { return path == Path || (d.path != "" && path == d.path) }

// CheckPath checks a path for Options.Path.
func CheckPath(path string) error {
	switch {
	case !strings.HasPrefix(path, "/") || path == "/":
		return fmt.Errorf("%q is no path such as /relay", path)
	case strings.ContainsAny(path, "?#% "):
		return fmt.Errorf("%q is more than a path: leave out query, fragment and escapes", path)
	case strings.HasPrefix(path, "/v1/") || path == "/healthz" || path == "/readyz":
		return fmt.Errorf("%q belongs to the relay or is reserved for it: choose another path", path)
	}
	return nil
}

// GroupTTL is not used: there are no members.
func (d *Dialect) GroupTTL() time.Duration { return 0 }

// Presence is not used: there are no members.
func (d *Dialect) Presence(string, bool) (relay.Frame, bool) { return relay.Frame{}, false }

// Undelivered is not used: there are no members.
func (d *Dialect) Undelivered(string) (relay.Frame, bool) { return relay.Frame{}, false }

// Wake is not used: no frame is stored.
func (d *Dialect) Wake(*relay.Member, relay.Frame) (push.Notification, bool) {
	return push.Notification{}, false
}

// Jobs of this dialect. The body is a connection, that of jobSettle a group.
const (
	jobHello  = "hello"  // closes a connection that has not sent hello in time
	jobExpiry = "expiry" // closes a connection whose token has expired
	jobSettle = "settle" // brings all peers up to date, in case a handler has died
)

// Connect accepts every connection: the token comes with hello.
func (d *Dialect) Connect(ctx context.Context, c *relay.Conn, _ gateway.ConnectEvent) (gateway.ConnectResult, error) {
	at := c.At.Add(d.lim().HelloTimeout)
	if err := d.core.Later(ctx, d, jobHello, []byte(c.ID), at); err != nil {
		return gateway.ConnectResult{}, err
	}
	return gateway.ConnectResult{ReadLimit: d.lim().MaxFrame}, nil
}

// Job runs a job.
func (d *Dialect) Job(ctx context.Context, j queue.Job) error {
	kind, ok := strings.CutPrefix(j.Kind, name+".")
	if ok && kind == jobSettle {
		return d.settleOthers(ctx, string(j.Body))
	}
	c, err := d.core.LoadConn(ctx, gateway.Conn(j.Body))
	if err != nil || c == nil {
		return err
	}
	p, admitted := privateOf(c)
	switch {
	case ok && kind == jobHello:
		if admitted {
			return nil
		}
		// The limit may have been raised since the job was sent.
		if at := c.At.Add(d.lim().HelloTimeout); d.core.Now().Before(at) {
			return d.core.Later(ctx, d, jobHello, j.Body, at)
		}
		return d.refuse(ctx, c, "", codeProto, "no hello within the time allowed")
	case ok && kind == jobExpiry:
		if !admitted {
			return nil
		}
		if d.core.Now().Before(d.closeTime(p.expires)) {
			return d.closeAtExpiry(ctx, c.ID, p)
		}
		return d.fail(ctx, c, codeAuth, refusedText)
	default:
		return fmt.Errorf("job of unknown kind %q", j.Kind)
	}
}

// closeTime is when a connection is closed whose token expires at expires. The leeway
// counts as at admission (section 8).
func (d *Dialect) closeTime(expires time.Time) time.Time { return expires.Add(d.lim().Leeway) }

// closeAtExpiry sends a job that closes a connection when its token has expired. The job
// looks at least once a day, however late the token expires.
func (d *Dialect) closeAtExpiry(ctx context.Context, c gateway.Conn, p private) error {
	at := d.closeTime(p.expires)
	if tomorrow := d.core.Now().Add(24 * time.Hour); tomorrow.Before(at) {
		at = tomorrow
	}
	return d.core.Later(ctx, d, jobExpiry, []byte(c), at)
}

// Disconnected lets the peer leave.
func (d *Dialect) Disconnected(ctx context.Context, c *relay.Conn) error {
	d.rates.forget(c.ID)
	p, admitted := privateOf(c)
	if !admitted {
		return nil
	}
	if p.counted {
		d.core.Observer().Left(name, p.role)
	}
	return d.leave(ctx, p.group, c.ID)
}

// ignoreGone drops the error of a connection that is gone: its Disconnect follows.
func ignoreGone(err error) error {
	if errors.Is(err, gateway.ErrGone) {
		return nil
	}
	return err
}
