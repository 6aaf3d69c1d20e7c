package agentknock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// Whoever calls an endpoint with a token that may be right, or asks for an address that
// may be taken, learns something. How often is bounded for each network address, with
// its new connections, and for each device.

// guesses are what is counted of a device.
type guesses struct {
	sort  string
	limit int64 // a minute
}

var (
	wrongTokens  = guesses{"g/token", 30}
	newAddresses = guesses{"g/address", 10}
)

// takeGuess counts a guess; if there are too many, it says how long to wait. m is nil if
// there is no such device.
func (d *Dialect) takeGuess(c *call, m *relay.Member, g guesses) (wait time.Duration, err error) {
	wait, err = d.takeAddress(c)
	if err != nil || wait > 0 || m == nil {
		return wait, err
	}
	return d.takeOf(c.Context(), deviceKeys{c.device, m.Generation}.key(g.sort), g.limit)
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
	return d.rest(c.Context(), table.Key{Partition: relay.AddressPartition + relay.AddressKey(ip), Sort: "n"})
}

// takeOf counts in a window that begins with the first one, and is the life of an item.
func (d *Dialect) takeOf(ctx context.Context, key table.Key, limit int64) (wait time.Duration, err error) {
	for range maxTries {
		old, err := d.core.Table().Write(ctx, table.Op{
			Action: table.Update, Key: key, Conds: []table.Cond{table.IfExists()}, Add: map[string]int64{"n": 1},
		})
		if err == nil {
			if old.Attrs["n"].Num() < limit {
				return 0, nil
			}
			return d.rest(ctx, key)
		}
		if !errors.Is(err, table.ErrCondition) {
			return 0, fmt.Errorf("failed to count a call: %w", err)
		}
		_, err = d.core.Table().Write(ctx, table.Op{
			Action: table.Put, Key: key, Conds: []table.Cond{table.IfAbsent()},
			Set: table.Attrs{"n": table.Number(1)}, Expires: d.core.Now().Add(minute),
		})
		if err == nil {
			return 0, nil
		}
		if !errors.Is(err, table.ErrCondition) {
			return 0, fmt.Errorf("failed to count a call: %w", err)
		}
	}
	return 0, fmt.Errorf("failed to count a call: %w", table.ErrBusy)
}

// rest is what is left of a window, and more than nothing.
func (d *Dialect) rest(ctx context.Context, key table.Key) (time.Duration, error) {
	it, err := d.core.Table().Get(ctx, key)
	if errors.Is(err, table.ErrNotFound) {
		return time.Second, nil // over just now
	}
	if err != nil {
		return 0, fmt.Errorf("failed to read how many calls there were: %w", err)
	}
	return max(it.Expires.Sub(d.core.Now()), time.Second), nil
}

// pathOf is the path of a call, in which an escaped slash is none.
func pathOf(r *http.Request) string {
	if strings.Contains(strings.ToUpper(r.URL.RawPath), "%2F") {
		return r.URL.EscapedPath()
	}
	return r.URL.Path
}
