package agentknock

import (
	"context"
	"errors"
	"time"

	"blindpost/shared/table"
)

// States of a client.
const (
	statePending   = "pending"
	stateActive    = "active"
	stateSuspended = "suspended"
	stateRevoked   = "revoked"
)

// clientRecord is a client as it is stored. The first request of its initial pairing
// creates it.
type clientRecord struct {
	ID      string
	State   string
	Token   []byte // hashed; nil when revoked
	Address string
	// Changed is the id of the frame that has set the state last, see relay.Conn.FrameID.
	Changed string
	usage
	// isNew says that the record is not stored yet.
	isNew bool
}

// usage holds the counters of a client or of a device. Only a device has Seq, the number
// of its last exchange.
type usage struct {
	Open, Bytes int64
	Began       int64 // exchanges in the window
	Window      time.Time
	Seq         int64
	// PairOpen, PairBytes and PairBegan count the exchanges of initial pairings, which
	// the others include. Only a device has them. See share.
	PairOpen, PairBytes, PairBegan int64
	// pairing says that they are stored: devices that were claimed by earlier versions do
	// not have them.
	pairing bool
	// Changes is how often the counters were changed: a recount is written on condition
	// that it is as it was read.
	Changes int64
}

const (
	attrOpen   = "no"
	attrBytes  = "nb"
	attrBegan  = "nw"
	attrWindow = "w"
	attrSeq    = "q"
	attrChange = "ch"

	attrPairOpen  = "po"
	attrPairBytes = "pb"
	attrPairBegan = "pw"
)

func usageFrom(a table.Attrs) usage {
	return usage{
		Open: a[attrOpen].Num(), Bytes: a[attrBytes].Num(), Began: a[attrBegan].Num(),
		Window: time.UnixMilli(a[attrWindow].Num()), Seq: a[attrSeq].Num(),
		Changes:  a[attrChange].Num(),
		PairOpen: a[attrPairOpen].Num(), PairBytes: a[attrPairBytes].Num(), PairBegan: a[attrPairBegan].Num(),
		pairing: a[attrPairOpen].Kind() != 0 && a[attrPairBytes].Kind() != 0,
	}
}

func (u usage) attrs() table.Attrs {
	return table.Attrs{
		attrOpen: table.Number(u.Open), attrBytes: table.Number(u.Bytes), attrBegan: table.Number(u.Began),
		attrWindow: table.Number(u.Window.UnixMilli()), attrSeq: table.Number(u.Seq),
		attrChange:   table.Number(u.Changes),
		attrPairOpen: table.Number(u.PairOpen), attrPairBytes: table.Number(u.PairBytes),
		attrPairBegan: table.Number(u.PairBegan),
	}
}

// unchanged is the condition that the counters are as they were read.
func (u usage) unchanged() []table.Cond {
	return []table.Cond{table.IfEqual(attrChange, table.Number(u.Changes))}
}

// begin counts a new exchange in its window; if there are too many, it returns how long
// to wait.
func (u *usage) begin(now time.Time, limit int64) (wait time.Duration) {
	if age := now.Sub(u.Window); age >= minute || age < 0 {
		u.Window, u.Began, u.PairBegan = time.UnixMilli(now.UnixMilli()), 0, 0
	}
	if limit > 0 && u.Began >= limit {
		return u.Window.Add(minute).Sub(now)
	}
	u.Began++
	return 0
}

// beginPairing is begin for the exchange of an initial pairing, which has a second limit.
func (u *usage) beginPairing(now time.Time, limit int64) (wait time.Duration) {
	before := *u
	if wait := u.begin(now, limit); wait > 0 {
		return wait
	}
	if limit > 0 && u.PairBegan >= share(limit, minPairings) {
		wait := u.Window.Add(minute).Sub(now)
		*u = before
		return wait
	}
	u.PairBegan++
	return 0
}

// pendingTTL is how long a client that was never accepted is kept after the last activity
// of its exchange: longer than the exchange is.
func (d *Dialect) pendingTTL() time.Duration {
	lim := d.lim()
	return 4*lim.ExchangeTTL + lim.RecoveryTTL + maxAge
}

func (c *clientRecord) attrs() table.Attrs {
	a := c.usage.attrs()
	a["st"] = table.String(c.State)
	a["ad"] = table.String(c.Address)
	if c.Token != nil {
		a["t"] = table.Bytes(c.Token)
	}
	return a
}

// loadClient reads a client, nil if there is none.
func (d *Dialect) loadClient(ctx context.Context, h deviceKeys, id string) (*clientRecord, error) {
	it, ok, err := d.core.Find(ctx, h.clientKey(id), "a client")
	if err != nil || !ok {
		return nil, err
	}
	a := it.Attrs
	return &clientRecord{
		ID: id, State: a["st"].Str(), Token: a["t"].Raw(), Address: a["ad"].Str(), Changed: a["f"].Str(),
		usage: usageFrom(a),
	}, nil
}

// loadUsage reads the counters of a device. They exist as long as the device.
func (d *Dialect) loadUsage(ctx context.Context, h deviceKeys) (usage, error) {
	it, ok, err := d.core.Find(ctx, h.key(countersSort), "the counters of a device")
	if err != nil {
		return usage{}, err
	}
	if !ok {
		return usage{}, errNoDevice
	}
	return usageFrom(it.Attrs), nil
}

// errNoDevice says that the device was deleted.
var errNoDevice = errors.New("device is gone")
