package table

import "time"

// Prepared is a valid operation whose new item is already encoded as far as it does not
// depend on the stored one. So an implementation that stores encoded items can encode
// before it takes its lock. Prepared refers to the operation's values, which must not
// change until it is applied.
type Prepared struct {
	op  Op
	put []byte // the encoded item of a Put
}

// Prepare prepares an operation that has passed Validate.
func Prepare(op Op) Prepared {
	p := Prepared{op: op}
	if op.Action == Put {
		p.put = AppendItem(nil, op.Set, op.Expires)
	}
	return p
}

// Action returns what the operation does.
func (p *Prepared) Action() Action { return p.op.Action }

// ApplyEncoded is [Apply] for encoded items. Old is the stored encoding, empty
// when nothing is stored. It returns the encoding of the new item, empty when there is
// none; it may use scratch for that. For a Check call [CheckEncoded] instead.
func ApplyEncoded[T string | []byte](p *Prepared, old T, now time.Time, scratch []byte) ([]byte, error) {
	switch p.op.Action {
	case Put, Delete:
		// Nothing of the old item remains, so only the conditions look at it.
		if err := CheckEncoded(p, old, now); err != nil {
			return nil, err
		}
		return p.put, nil
	}
	stored, err := decodeStored(p.op.Key, old)
	if err != nil {
		return nil, err
	}
	next, err := Apply(p.op, stored, now)
	if err != nil || next == nil {
		return nil, err
	}
	return AppendItem(scratch[:0], next.Attrs, next.Expires), nil
}

// CheckEncoded evaluates only the conditions.
func CheckEncoded[T string | []byte](p *Prepared, old T, now time.Time) error {
	if len(p.op.Conds) == 0 {
		return nil
	}
	live, err := decodeLive(p.op.Key, old, now, looksInside(p.op.Conds))
	if err != nil {
		return err
	}
	for i := range p.op.Conds {
		if !holds(&p.op.Conds[i], live) {
			return &ConditionError{}
		}
	}
	return nil
}

// looksInside reports whether a condition needs the attributes of the item.
func looksInside(conds []Cond) bool {
	for i := range conds {
		if conds[i].Test != Exists && conds[i].Test != Absent {
			return true
		}
	}
	return false
}

// decodeLive decodes an item unless it is absent; without inside, the returned item has
// no attributes.
func decodeLive[T string | []byte](k Key, b T, now time.Time, inside bool) (*Item, error) {
	if len(b) == 0 {
		return nil, nil
	}
	expires, err := DecodeExpires(b)
	if err != nil {
		return nil, err
	}
	it := &Item{Key: k, Expires: expires}
	if it.Expired(now) {
		return nil, nil
	}
	if inside {
		return decodeStored(k, b)
	}
	return it, nil
}

func decodeStored[T string | []byte](k Key, b T) (*Item, error) {
	if len(b) == 0 {
		return nil, nil
	}
	it, err := decode(k, b)
	if err != nil {
		return nil, err
	}
	return &it, nil
}
