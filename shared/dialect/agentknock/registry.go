package agentknock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// What a device does to itself by HTTP: claim, address, pairing, push, delete.

var (
	errOtherToken   = errors.New("device is claimed with another token")
	errAddressTaken = errors.New("address belongs to another device")
)

// lookEvery is when the sweeper looks at a device for the first time.
const lookEvery = 24 * time.Hour

// claim creates a device, or finds that it exists with the same token. It calls admit
// before it writes a new device.
func (d *Dialect) claim(ctx context.Context, device string, token []byte, admit func() error) error {
	group := groupOf(device)
	return retry("claim a device", func() error {
		m, err := d.core.GetMember(ctx, group, deviceMember)
		if err != nil {
			return err
		}
		if m != nil {
			if !sameToken(m.Attr(attrToken).Raw(), token) {
				return errOtherToken
			}
			return nil
		}
		if err := admit(); err != nil {
			return err
		}
		// The deletion of an earlier generation may have been interrupted.
		if err := d.core.CleanGroup(ctx, group); err != nil {
			return err
		}
		h := deviceKeys{device, d.core.NewID()}
		member := relay.NewMember{
			Generation: h.generation, Role: roleDevice,
			Attrs: map[string]table.Value{attrToken: table.Bytes(token), attrPairing: table.Number(1)},
		}
		err = d.core.Table().Transact(ctx, []table.Op{
			d.core.CreateOp(group, deviceMember, member, table.IfAbsent()),
			relay.RootOp(group, h.generation, deviceMember),
			relay.DueOp(d.core.Now().Add(lookEvery), group),
			{Action: table.Put, Key: h.key(countersSort), Set: usage{}.attrs()},
		})
		if err != nil {
			return fmt.Errorf("failed to claim a device: %w", err)
		}
		d.core.Log().InfoContext(ctx, "device claimed", "device", short(device))
		return nil
	})
}

func addressKey(address string) table.Key {
	return table.Key{Partition: addressPartition + address, Sort: "a"}
}

func (h deviceKeys) attrs() table.Attrs {
	return table.Attrs{"d": table.String(h.device), "g": table.String(h.generation)}
}

// lookUp reads which device has an address, whether or not the device was deleted since;
// false if none has had it.
func (d *Dialect) lookUp(ctx context.Context, address string) (deviceKeys, bool, error) {
	it, ok, err := d.core.Find(ctx, addressKey(address), "an address")
	if err != nil || !ok {
		return deviceKeys{}, false, err
	}
	return deviceKeys{it.Attrs["d"].Str(), it.Attrs["g"].Str()}, true, nil
}

// resolve finds the device at an address.
func (d *Dialect) resolve(ctx context.Context, address string) (deviceKeys, *refusal, error) {
	h, ok, err := d.lookUp(ctx, address)
	if err == nil && !ok {
		return h, &refuseAddress, nil
	}
	return h, nil, err
}

// setAddress gives a device an address, and takes the one before away.
func (d *Dialect) setAddress(ctx context.Context, m *relay.Member, address string) error {
	self := deviceKeys{deviceOf(m.Group), m.Generation}
	return d.retryDevice(ctx, "claim an address", m, func(m *relay.Member) error {
		before := m.Attr(attrAddress).Str()
		holder, taken, err := d.lookUp(ctx, address)
		if err != nil {
			return err
		}
		if taken && holder == self && before == address {
			return nil
		}
		conds := []table.Cond{table.IfAbsent()}
		if taken {
			if holder != self {
				other, err := d.device(ctx, holder)
				if err != nil {
					return err
				}
				if other != nil {
					return errAddressTaken
				}
			}
			conds = []table.Cond{
				table.IfEqual("d", table.String(holder.device)), table.IfEqual("g", table.String(holder.generation)),
			}
		}
		change := relay.MemberChange{Attrs: map[string]table.Value{attrAddress: table.String(address)}}
		// On condition that the address of the device is as it was read: of two changes at
		// once the second reads again, and gives up the address of the first.
		unchanged := append(m.IfUnchanged(), ifAttr(m, attrAddress))
		ops := []table.Op{
			{Action: table.Put, Key: addressKey(address), Set: self.attrs(), Conds: conds},
			relay.UpdateOp(m.Group, m.Key, change, unchanged...),
		}
		if before != "" && before != address {
			ops = append(ops, table.Op{Action: table.Delete, Key: addressKey(before)})
		}
		if err := d.core.Table().Transact(ctx, ops); err != nil {
			return fmt.Errorf("failed to claim an address: %w", err)
		}
		return nil
	})
}

// ifAttr holds as long as an attribute of the dialect is as it was read.
func ifAttr(m *relay.Member, attr string) table.Cond {
	if v := m.Attr(attr); v.Kind() != 0 {
		return relay.IfAttr(attr, v)
	}
	return relay.IfNoAttr(attr)
}

// retryDevice is retry for a device that was read, and is read again before another try.
func (d *Dialect) retryDevice(ctx context.Context, what string, m *relay.Member, try func(*relay.Member) error) error {
	self := deviceKeys{deviceOf(m.Group), m.Generation}
	return retry(what, func() error {
		err := try(m)
		if !errors.Is(err, table.ErrCondition) {
			return err
		}
		again, failed := d.device(ctx, self)
		switch {
		case failed != nil:
			return failed
		case again == nil:
			return errNoDevice
		}
		m = again
		return err
	})
}

// change changes a device, again if another handler changes it at the same time.
func (d *Dialect) change(ctx context.Context, m *relay.Member, ch relay.MemberChange) error {
	return d.retryDevice(ctx, "change a device", m, func(m *relay.Member) error { return d.changeDevice(ctx, m, ch) })
}

func (d *Dialect) setPairing(ctx context.Context, m *relay.Member, enabled bool) error {
	v := table.Number(0)
	if enabled {
		v = table.Number(1)
	}
	return d.change(ctx, m, relay.MemberChange{Attrs: map[string]table.Value{attrPairing: v}})
}

func (d *Dialect) setPush(ctx context.Context, m *relay.Member, fid string) error {
	platform := int64(push.Android)
	return d.change(ctx, m, relay.MemberChange{
		Token: &fid, Platform: &platform,
		Attrs: map[string]table.Value{attrPush: table.String(pushRegistered)},
	})
}

// delete removes a device and all that belongs to it. The device is gone with its member;
// purge deletes the rest. A job runs purge again in case this handler dies, and a new
// claim of the id deletes what is still stored.
func (d *Dialect) delete(ctx context.Context, m *relay.Member) error {
	h := deviceKeys{deviceOf(m.Group), m.Generation}
	release, err := d.hold(ctx, h)
	if err != nil {
		return err
	}
	defer release()
	b := jobBody{Device: h.device, Generation: h.generation}
	if err := d.later(ctx, jobPurge, b, d.core.Now().Add(purgeAfter)); err != nil {
		return err
	}
	err = retry("delete a device", func() error {
		m, err := d.device(ctx, h)
		if err != nil || m == nil {
			return err
		}
		ops := relay.RemoveOps(m, relay.Removal{Code: gateway.CloseNormal, Reason: "the device was deleted"})
		if address := m.Attr(attrAddress).Str(); address != "" {
			ops[0].Conds = append(ops[0].Conds, ifAttr(m, attrAddress))
			ops = append(ops, table.Op{Action: table.Delete, Key: addressKey(address)})
		}
		if err := d.core.Table().Transact(ctx, ops); err != nil {
			return fmt.Errorf("failed to delete a device: %w", err)
		}
		d.core.Log().InfoContext(ctx, "device deleted", "device", short(h.device))
		return nil
	})
	if err != nil {
		return err
	}
	return d.purge(ctx, h)
}

// purgeAfter is when purge runs again: connections that were being opened are open by
// then, and can be closed.
const purgeAfter = 30 * time.Second

// purge closes the connections of a deleted device and deletes what is stored.
func (d *Dialect) purge(ctx context.Context, h deviceKeys) error {
	return errors.Join(
		d.core.FinishRemovals(ctx, h.group()),
		d.closeSockets(ctx, h, "", gateway.CloseRevoked, "the device was deleted"),
		d.core.AnnounceRemovals(ctx, h.group()),
		d.core.CleanGroup(ctx, h.group()),
		d.CleanGroup(ctx, h.group(), h.generation),
	)
}

func (d *Dialect) purgeJob(ctx context.Context, b jobBody) error {
	m, err := d.device(ctx, b.keys())
	if err != nil || m != nil {
		return err // the device was not deleted
	}
	return d.purge(ctx, b.keys())
}

// CleanGroup deletes what is stored for one generation of a device.
func (d *Dialect) CleanGroup(ctx context.Context, group, generation string) error {
	h := deviceKeys{deviceOf(group), generation}
	q := table.Query{Partition: h.partition()}
	for {
		p, err := d.core.Table().Query(ctx, q)
		if err != nil {
			return fmt.Errorf("failed to read what belonged to a device: %w", err)
		}
		for _, it := range p.Items {
			if _, err := d.core.Table().Write(ctx, table.Op{Action: table.Delete, Key: it.Key}); err != nil {
				return fmt.Errorf("failed to delete what belonged to a device: %w", err)
			}
		}
		if !p.More {
			return nil
		}
		q.After = p.Next
	}
}
