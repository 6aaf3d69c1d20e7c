package relay

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"blindpost/shared/table"
)

// AddressPartition is the prefix of the partitions that count connections per
// address. They may live in a table that forgets them on restart.
const AddressPartition = "ip/"

// Limits of the core. A zero value of MailboxCap, ConnectionsPerIP,
// MessagesPerMinute or ControlPerMinute lifts that limit.
type Limits struct {
	// MailboxCap is the largest number of stored frames per member.
	MailboxCap int64
	// MessageTTL is how long a stored frame waits before it is dropped.
	MessageTTL time.Duration
	// ConnectionsPerIP is the number of connections that one address (IPv6: one
	// /64) may open per minute.
	ConnectionsPerIP int64
	// MessagesPerMinute is the number of messages per connection and minute.
	MessagesPerMinute int64
	// ControlPerMinute is the number of other frames per connection and minute.
	ControlPerMinute int64
}

const limitWindow = time.Minute

func windowFrom(a table.Attrs, start, n string) rateWindow {
	v, ok := a[start]
	if !ok {
		return rateWindow{}
	}
	return rateWindow{start: time.UnixMilli(v.Num()), n: a[n].Num()}
}

func (w rateWindow) put(a table.Attrs, start, n string) {
	if w.n != 0 {
		a[start] = table.Number(w.start.UnixMilli())
		a[n] = table.Number(w.n)
	}
}

// take counts one event and reports whether it is within the limit. A window
// begins with the first event after the last one has ended.
func (w *rateWindow) take(now time.Time, limit int64) bool {
	if now.Sub(w.start) >= limitWindow || now.Before(w.start) {
		*w = rateWindow{start: now.Truncate(time.Millisecond)} // as it is stored
	}
	if w.n >= limit {
		return false
	}
	w.n++
	return true
}

// TakeMessage counts a message of the connection and reports whether it is
// within the budget.
func (r *Relay) TakeMessage(ctx context.Context, c *Conn) (bool, error) {
	return r.take(ctx, c, &c.messages, r.Limits().MessagesPerMinute)
}

// TakeControl counts a frame of the connection that is no message.
func (r *Relay) TakeControl(ctx context.Context, c *Conn) (bool, error) {
	return r.take(ctx, c, &c.control, r.Limits().ControlPerMinute)
}

// TakeMessageOf counts a message of the connection against a limit of the dialect;
// 0 lifts it.
func (r *Relay) TakeMessageOf(ctx context.Context, c *Conn, limit int64) (bool, error) {
	return r.take(ctx, c, &c.messages, limit)
}

func (r *Relay) take(ctx context.Context, c *Conn, w *rateWindow, limit int64) (bool, error) {
	if limit == 0 || (c.frame != "" && c.frame == c.counted) {
		return true, nil
	}
	name := windowName{c.ID, w == &c.control}
	began := w.start
	if !w.take(r.now(), limit) {
		return false, nil
	}
	c.counted = c.frame
	if r.distributed && limit >= batchFrom && r.unsaved.count(name, w.start, w.start.Equal(began)) < saveEvery && w.n <= limit/2 {
		return true, nil
	}
	return true, r.SaveConn(ctx, c)
}

// AddressKey names the counter of an address: an IPv4 address itself, the /64 of an
// IPv6 address, because one subscriber has 2^64 of those.
func AddressKey(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

// TakeAddress counts a new connection of an address, or an HTTP request that a dialect
// limits like one, and reports whether it is within the limit.
func (r *Relay) TakeAddress(ctx context.Context, ip netip.Addr) (bool, error) {
	limit := r.Limits().ConnectionsPerIP
	if limit == 0 {
		return true, nil
	}
	return r.CountAt(ctx, AddressCounter(ip), limit)
}

// AddressCounter is the key of the counter of an address.
func AddressCounter(ip netip.Addr) table.Key {
	return table.Key{Partition: AddressPartition + AddressKey(ip), Sort: attrCount}
}

// CountAt counts one event in the item at key, and reports whether it is within the limit.
// The window is the life of the item: it begins with the first event and lasts a minute.
func (r *Relay) CountAt(ctx context.Context, key table.Key, limit int64) (bool, error) {
	for range maxTries {
		old, err := r.table.Write(ctx, table.Op{
			Action: table.Update, Key: key,
			Conds: []table.Cond{table.IfExists()},
			Add:   map[string]int64{attrCount: 1},
		})
		if err == nil {
			return old.Attrs[attrCount].Num() < limit, nil
		}
		if !errors.Is(err, table.ErrCondition) {
			return false, fmt.Errorf("failed to count against a limit: %w", err)
		}
		_, err = r.table.Write(ctx, table.Op{
			Action: table.Put, Key: key,
			Conds:   []table.Cond{table.IfAbsent()},
			Set:     table.Attrs{attrCount: table.Number(1)},
			Expires: r.now().Add(limitWindow),
		})
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, table.ErrCondition) {
			return false, fmt.Errorf("failed to count against a limit: %w", err)
		}
	}
	return false, fmt.Errorf("failed to count against a limit: %w", table.ErrBusy)
}
