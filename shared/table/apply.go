package table

import (
	"bytes"
	"errors"
	"math"
	"time"
)

// Equal reports whether two values have the same kind and content. Zero Values
// (absent attributes) are not equal to anything.
func (v Value) Equal(w Value) bool {
	if v.kind != w.kind {
		return false
	}
	switch v.kind {
	case KindString:
		return v.str == w.str
	case KindNumber:
		return v.num == w.num
	case KindBytes:
		return bytes.Equal(v.raw, w.raw)
	default:
		return false
	}
}

// Expired reports whether the item is absent at that moment.
func (it *Item) Expired(now time.Time) bool {
	return !it.Expires.IsZero() && !now.Before(it.Expires)
}

// numberSize is the size of a number: the most that DynamoDB counts for 64 bits.
const numberSize = 11

// Size is the size of an item that MaxItemSize limits.
func Size(k Key, attrs Attrs) int {
	size := len(k.Partition) + len(k.Sort)
	for name, v := range attrs {
		size += len(name) + len(v.str) + len(v.raw)
		if v.kind == KindNumber {
			size += numberSize
		}
	}
	return size
}

// Apply returns the item after op: nil if there is none. Old is the stored item, nil if
// there is none; Apply treats an expired item as absent. A Check returns the old item.
//
// Apply writes neither to op nor to old, but the new item shares the bytes of
// their values: encode or copy it before you return it to a caller. The operation must
// have passed Validate. Errors are a *ConditionError (with Op 0), ErrInvalid (an Add to
// an attribute that is no number, or beyond 64 bits) and ErrTooLarge.
func Apply(op Op, old *Item, now time.Time) (*Item, error) {
	if old != nil && old.Expired(now) {
		old = nil
	}
	for i := range op.Conds {
		if !holds(&op.Conds[i], old) {
			return nil, &ConditionError{}
		}
	}
	switch op.Action {
	case Put:
		return put(op)
	case Update:
		return update(op, old)
	case Delete:
		return nil, nil
	case Check:
		return old, nil
	default:
		return nil, invalid("unknown action")
	}
}

func put(op Op) (*Item, error) {
	if Size(op.Key, op.Set) > MaxItemSize {
		return nil, ErrTooLarge
	}
	next := &Item{Key: op.Key, Attrs: make(Attrs, len(op.Set)), Expires: RoundExpires(op.Expires)}
	for name, v := range op.Set {
		next.Attrs[name] = v
	}
	return next, nil
}

func update(op Op, old *Item) (*Item, error) {
	next := &Item{Key: op.Key}
	if old != nil {
		next.Attrs = make(Attrs, len(old.Attrs)+len(op.Set))
		for name, v := range old.Attrs {
			next.Attrs[name] = v
		}
		next.Expires = old.Expires
	} else {
		next.Attrs = make(Attrs, len(op.Set)+len(op.Add))
	}
	for name, delta := range op.Add {
		v, present := next.Attrs[name]
		if present && v.kind != KindNumber {
			return nil, invalid("add to an attribute that is no number")
		}
		if (delta > 0 && v.num > math.MaxInt64-delta) || (delta < 0 && v.num < math.MinInt64-delta) {
			return nil, invalid("sum exceeds 64 bits")
		}
		next.Attrs[name] = Number(v.num + delta)
	}
	for _, name := range op.Remove {
		delete(next.Attrs, name)
	}
	for name, v := range op.Set {
		next.Attrs[name] = v
	}
	switch {
	case op.KeepForever:
		next.Expires = time.Time{}
	case !op.Expires.IsZero():
		next.Expires = RoundExpires(op.Expires)
	}
	if Size(next.Key, next.Attrs) > MaxItemSize {
		return nil, ErrTooLarge
	}
	return next, nil
}

// holds evaluates a condition against a live item or nil.
func holds(c *Cond, it *Item) bool {
	switch c.Test {
	case Exists:
		return it != nil
	case Absent:
		return it == nil
	}
	var v Value
	if it != nil {
		v = it.Attrs[c.Attr]
	}
	switch c.Test {
	case AttrAbsent:
		return v.kind == 0
	case Equal:
		return v.Equal(c.Value)
	case Less:
		return v.kind == KindNumber && c.Value.kind == KindNumber && v.num < c.Value.num
	case AtMost:
		return v.kind == KindNumber && c.Value.kind == KindNumber && v.num <= c.Value.num
	default:
		return false
	}
}

// RoundExpires rounds an expiry up to whole seconds, in UTC. The zero time
// stays what it is.
func RoundExpires(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.Unix(wholeSeconds(t), 0).UTC()
}

// wholeSeconds is the Unix time, rounded up.
func wholeSeconds(t time.Time) int64 {
	sec := t.Unix()
	if t.Nanosecond() > 0 {
		sec++
	}
	return sec
}

// AtOp sets the operation of a ConditionError in err.
func AtOp(err error, op int) error {
	var condition *ConditionError
	if errors.As(err, &condition) {
		condition.Op = op
	}
	return err
}
