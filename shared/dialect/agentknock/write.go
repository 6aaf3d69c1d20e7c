package agentknock

import (
	"context"
	"fmt"
	"maps"
	"time"

	"blindpost/shared/table"
)

// loadExchange reads an exchange as it is now, nil if there is none.
func (d *Dialect) loadExchange(ctx context.Context, h deviceKeys, id string, revoked bool) (*record, error) {
	it, ok, err := d.core.Find(ctx, h.exchangeKey(id), "an exchange")
	if err != nil || !ok {
		return nil, err
	}
	x := recordFrom(id, it.Attrs)
	x.age(d.core.Now(), revoked, d.lim())
	return x, nil
}

// loadPayload reads a payload that waits; false if it is not there.
func (d *Dialect) loadPayload(ctx context.Context, h deviceKeys, id string, k kind) ([]byte, bool, error) {
	it, ok, err := d.core.Find(ctx, h.payloadKey(id, k), "a payload")
	if err != nil || !ok {
		return nil, false, err
	}
	return it.Attrs["p"].Raw(), true, nil
}

// step is one change of an exchange, to be written in one transaction.
type step struct {
	deviceKeys
	before, after *record       // before is nil for a new exchange
	client        *clientRecord // nil if it has expired
	// begins are the counters of the device as they were read, if the exchange is new.
	begins *usage
	// pairing says that the device has counters of pairings.
	pairing bool
	// attempt checks that the attempt is as it was read, for a step that creates the client.
	attempt []table.Op
	// kind and payload are those of the accepted message; payload is nil if there is none.
	kind    kind
	payload []byte
}

// next makes the record that follows x.
func (x *record) next() *record {
	y := *x
	y.Sizes = maps.Clone(x.Sizes)
	y.Version++
	return &y
}

// settle drops the sizes of messages that no longer wait.
func (x *record) settle() {
	for _, k := range kinds {
		if x.of(k) != Accepted {
			delete(x.Sizes, k)
		}
	}
}

// growth is what a step adds to the counters.
func (s *step) growth() (open, bytes int64) {
	if s.after.Live() {
		open, bytes = 1, s.after.bytes()
	}
	if s.before != nil && s.before.counted {
		open, bytes = open-1, bytes-s.before.bytes()
	}
	return open, bytes
}

// write carries out a step. table.ErrCondition says that an item has changed since it was
// read.
func (d *Dialect) write(ctx context.Context, s *step) error {
	ops := []table.Op{s.exchangeOp(d.lim())}
	ops = append(ops, s.openOps()...)
	ops = append(ops, s.payloadOps()...)
	ops = append(ops, d.counterOps(s)...)
	ops = append(ops, s.attempt...)
	if err := d.core.Table().Transact(ctx, ops); err != nil {
		return fmt.Errorf("failed to write an exchange: %w", err)
	}
	return nil
}

func (s *step) exchangeOp(lim *Limits) table.Op {
	op := table.Op{
		Action: table.Put, Key: s.exchangeKey(s.after.ID), Set: s.after.attrs(), Expires: s.after.keepUntil(lim),
		Conds: []table.Cond{table.IfAbsent()},
	}
	if s.before != nil {
		op.Conds = []table.Cond{table.IfEqual("v", table.Number(s.before.Version))}
	}
	return op
}

func (s *step) openOps() []table.Op {
	switch {
	case s.after.Live():
		return []table.Op{{
			Action: table.Put, Key: s.openKey(s.after.Seq), Set: s.after.openAttrs(), Expires: s.after.Deadline,
		}}
	case s.before != nil && s.before.Seq != 0:
		return []table.Op{{Action: table.Delete, Key: s.openKey(s.before.Seq)}}
	}
	return nil
}

func (s *step) payloadOps() []table.Op {
	var ops []table.Op
	for _, k := range kinds {
		_, keep := s.after.Sizes[k]
		had := s.before != nil && s.before.has(k)
		key := s.payloadKey(s.after.ID, k)
		switch {
		case keep && s.payload != nil && k == s.kind:
			ops = append(ops, table.Op{
				Action: table.Put, Key: key, Expires: s.after.Deadline,
				Set: table.Attrs{"p": table.Bytes(s.payload)},
			})
		case keep && !s.before.Deadline.Equal(s.after.Deadline):
			ops = append(ops, table.Op{
				Action: table.Update, Key: key, Expires: s.after.Deadline,
				Conds: []table.Cond{table.IfExists()},
			})
		case had && !keep:
			ops = append(ops, table.Op{Action: table.Delete, Key: key})
		}
	}
	return ops
}

// has reports whether the payload of a message is stored.
func (x *record) has(k kind) bool {
	_, ok := x.Sizes[k]
	return ok
}

// counterOps change the counters of the device and of the client, on condition that
// they stay within their limits.
func (d *Dialect) counterOps(s *step) []table.Op {
	open, bytes := s.growth()
	if open == 0 && bytes == 0 && s.begins == nil {
		return d.keepOps(s)
	}
	lim := d.lim()
	device := growOp(s.key(countersSort), open, bytes, lim.DeviceOpenExchanges, lim.DeviceStoredBytes)
	if s.pairs() {
		s.growPairing(&device, open, bytes, lim)
	}
	if u := s.begins; u != nil {
		device.Conds = append(device.Conds, table.IfEqual(attrSeq, table.Number(u.Seq)))
		u.setBegan(&device, d.core.Now(), lim.DeviceExchangesPerMinute)
		device.Set[attrSeq] = table.Number(u.Seq + 1)
		if s.pairs() {
			began := *u
			began.beginPairing(d.core.Now(), 0)
			device.Set[attrPairBegan] = table.Number(began.PairBegan)
		}
	}
	c := s.client
	switch {
	case c == nil:
		return []table.Op{device}
	case c.isNew:
		fresh := *c
		fresh.Open, fresh.Bytes = open, bytes
		fresh.begin(d.core.Now(), 0)
		return []table.Op{device, {
			Action: table.Put, Key: s.clientKey(c.ID), Set: fresh.attrs(), Expires: d.core.Now().Add(d.pendingTTL()),
			Conds: []table.Cond{table.IfAbsent()},
		}}
	}
	client := growOp(s.clientKey(c.ID), open, bytes, lim.ClientOpenExchanges, lim.ClientStoredBytes)
	client.Conds = append(client.Conds, c.ifState())
	if s.begins != nil {
		c.setBegan(&client, d.core.Now(), lim.ClientExchangesPerMinute)
	}
	if c.State == statePending {
		client.Expires = d.core.Now().Add(d.pendingTTL())
	}
	return []table.Op{device, client}
}

// ifState holds as long as a client is in the state in which it was read. Every write of a
// client demands it, because the state decides whether the record expires.
func (c *clientRecord) ifState() table.Cond { return table.IfEqual("st", table.String(c.State)) }

// keepOps extend the expiry of a pending client with that of its exchange, when no counter
// changes.
func (d *Dialect) keepOps(s *step) []table.Op {
	c := s.client
	if c == nil || c.isNew || c.State != statePending || !s.after.Live() {
		return nil
	}
	return []table.Op{{
		Action: table.Update, Key: s.clientKey(c.ID), Conds: []table.Cond{c.ifState()},
		Expires: d.core.Now().Add(d.pendingTTL()),
	}}
}

// pairs reports whether the exchange is that of an initial pairing.
func (s *step) pairs() bool { return s.after.Address != "" }

// growPairing adds to the counters of pairings. A response of the device counts, but is not
// limited by their share.
func (s *step) growPairing(op *table.Op, open, bytes int64, lim *Limits) {
	if open != 0 {
		op.Add[attrPairOpen] = open
	}
	if bytes != 0 {
		op.Add[attrPairBytes] = bytes
	}
	if !s.pairing {
		return
	}
	if open > 0 && lim.DeviceOpenExchanges > 0 {
		op.Conds = append(op.Conds, table.IfAtMost(attrPairOpen, share(lim.DeviceOpenExchanges, minPairings)-open))
	}
	if bytes > 0 && lim.DeviceStoredBytes > 0 && s.kind != response {
		op.Conds = append(op.Conds, table.IfAtMost(attrPairBytes, share(lim.DeviceStoredBytes, MaxFrame)-bytes))
	}
}

// growOp adds to counters, and lets them grow only within their limits.
func growOp(key table.Key, open, bytes, maxOpen, maxBytes int64) table.Op {
	op := table.Op{
		Action: table.Update, Key: key, Conds: []table.Cond{table.IfExists()},
		Set: table.Attrs{}, Add: map[string]int64{attrChange: 1},
	}
	if open != 0 {
		op.Add[attrOpen] = open
	}
	if bytes != 0 {
		op.Add[attrBytes] = bytes
	}
	if open > 0 && maxOpen > 0 {
		op.Conds = append(op.Conds, table.IfAtMost(attrOpen, maxOpen-open))
	}
	if bytes > 0 && maxBytes > 0 {
		op.Conds = append(op.Conds, table.IfAtMost(attrBytes, maxBytes-bytes))
	}
	return op
}

// setBegan has an operation count a new exchange, on condition that the window is as
// it was read.
func (u usage) setBegan(op *table.Op, now time.Time, limit int64) {
	op.Conds = append(op.Conds,
		table.IfEqual(attrBegan, table.Number(u.Began)),
		table.IfEqual(attrWindow, table.Number(u.Window.UnixMilli())))
	u.begin(now, limit) // u is a copy
	op.Set[attrBegan] = table.Number(u.Began)
	op.Set[attrWindow] = table.Number(u.Window.UnixMilli())
}
