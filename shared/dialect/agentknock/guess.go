package agentknock

import (
	"context"
	"net/http"
	"strings"
	"time"

	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// A caller of an endpoint that tries a token, or asks for an address, learns whether the
// token is right or the address taken. Such guesses are limited per network address,
// together with its new connections, and per device.

// guesses is a counter of a device.
type guesses struct {
	sort  string
	limit int64 // a minute
}

var (
	wrongTokens  = guesses{"g/token", 30}
	newAddresses = guesses{"g/address", 10}
)

// takeGuess counts a guess; if there are too many, it returns how long to wait. m is nil
// if there is no such device.
func (d *Dialect) takeGuess(c *call, m *relay.Member, g guesses) (wait time.Duration, err error) {
	wait, err = d.takeAddress(c)
	if err != nil || wait > 0 || m == nil {
		return wait, err
	}
	key := deviceKeys{c.device, m.Generation}.key(g.sort)
	within, err := d.core.CountAt(c.Context(), key, g.limit)
	if err != nil || within {
		return 0, err
	}
	return d.windowLeft(c.Context(), key)
}

// takeAddress counts a call against the limit of its network address.
func (d *Dialect) takeAddress(c *call) (wait time.Duration, err error) {
	if d.remoteIP == nil {
		return 0, nil
	}
	ip := d.remoteIP(c.Request)
	if !ip.IsValid() {
		return 0, nil
	}
	within, err := d.core.TakeAddress(c.Context(), ip)
	if err != nil || within {
		return 0, err
	}
	return d.windowLeft(c.Context(), relay.AddressCounter(ip))
}

// windowLeft is how long the window of a counter still lasts, at least a second.
func (d *Dialect) windowLeft(ctx context.Context, key table.Key) (time.Duration, error) {
	it, ok, err := d.core.Find(ctx, key, "how many calls there were")
	if err != nil {
		return 0, err
	}
	if !ok {
		return time.Second, nil // it has just ended
	}
	return max(it.Expires.Sub(d.core.Now()), time.Second), nil
}

// pathOf is the path of a call. An escaped slash does not count as one.
func pathOf(r *http.Request) string {
	if strings.Contains(strings.ToUpper(r.URL.RawPath), "%2F") {
		return r.URL.EscapedPath()
	}
	return r.URL.Path
}
