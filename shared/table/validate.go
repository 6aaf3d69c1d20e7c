package table

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// The rules of the contract that do not depend on the stored item. Every implementation
// checks them first, so that all refuse the same requests. Messages name the rule and
// never the value: keys and values must not get into logs.

// Validate checks a key.
func (k Key) Validate() error {
	if problem := keyProblem(k.Partition); problem != "" {
		return invalid("partition key " + problem)
	}
	if problem := keyProblem(k.Sort); problem != "" {
		return invalid("sort key " + problem)
	}
	return nil
}

// Validate checks a query. Prefix, After and Before need not be possible sort
// keys, but they are valid UTF-8 of at most MaxKey bytes.
func (q Query) Validate() error {
	if problem := keyProblem(q.Partition); problem != "" {
		return invalid("partition key " + problem)
	}
	for _, bound := range [...]string{q.Prefix, q.After, q.Before} {
		if len(bound) > MaxKey {
			return invalid("bound of a query is too long")
		}
		if !utf8.ValidString(bound) {
			return invalid("bound of a query is not valid UTF-8")
		}
	}
	if q.Limit < 0 {
		return invalid("limit is negative")
	}
	return nil
}

// ValidateWrite checks an operation for Write.
func ValidateWrite(op Op) error {
	if op.Action == Check {
		return invalid("check outside of a transaction")
	}
	return Validate(op)
}

// ValidateTransaction checks the operations of a Transact. None at all is a
// valid transaction that does nothing.
func ValidateTransaction(ops []Op) error {
	if len(ops) > MaxTransaction {
		return invalid("too many operations in a transaction")
	}
	size := 0
	for i := range ops {
		if err := Validate(ops[i]); err != nil {
			return err
		}
		size += Size(ops[i].Key, ops[i].Set)
	}
	if size > MaxRequest {
		return fmt.Errorf("%w: the operations of a transaction", ErrTooLarge)
	}
	if repeatsKey(ops) {
		return invalid("two operations of a transaction on one item")
	}
	return nil
}

// Validate checks one operation of a Transact. It returns ErrTooLarge if Set alone
// exceeds MaxItemSize, and ErrInvalid for any other violation.
func Validate(op Op) error {
	if err := op.Key.Validate(); err != nil {
		return err
	}
	if err := validateConds(op.Conds); err != nil {
		return err
	}
	switch op.Action {
	case Put:
		if len(op.Add) > 0 || len(op.Remove) > 0 || op.KeepForever {
			return invalid("put with parts of an update")
		}
	case Update:
		if err := validateUpdate(op); err != nil {
			return err
		}
	case Delete, Check:
		if len(op.Set) > 0 || len(op.Add) > 0 || len(op.Remove) > 0 || !op.Expires.IsZero() || op.KeepForever {
			return invalid("delete or check with something to write")
		}
		if op.Action == Check && len(op.Conds) == 0 {
			return invalid("check without a condition")
		}
	default:
		return invalid("unknown action")
	}
	for name, v := range op.Set {
		if err := validateAttr(name, v); err != nil {
			return err
		}
	}
	if err := validateExpires(op.Expires); err != nil {
		return err
	}
	if Size(op.Key, op.Set) > MaxItemSize {
		return ErrTooLarge
	}
	return nil
}

func validateUpdate(op Op) error {
	if op.KeepForever && !op.Expires.IsZero() {
		return invalid("expiry set and removed")
	}
	for name := range op.Add {
		if err := validateName(name); err != nil {
			return err
		}
		if _, both := op.Set[name]; both {
			return invalid("attribute changed twice")
		}
	}
	for i, name := range op.Remove {
		if err := validateName(name); err != nil {
			return err
		}
		_, set := op.Set[name]
		_, added := op.Add[name]
		if set || added {
			return invalid("attribute changed twice")
		}
		for _, earlier := range op.Remove[:i] {
			if earlier == name {
				return invalid("attribute changed twice")
			}
		}
	}
	return nil
}

func validateConds(conds []Cond) error {
	for i := range conds {
		c := &conds[i]
		switch c.Test {
		case Exists, Absent:
			continue
		case AttrAbsent:
			if err := validateName(c.Attr); err != nil {
				return err
			}
		case Equal:
			if err := validateAttr(c.Attr, c.Value); err != nil {
				return err
			}
		case Less, AtMost:
			if err := validateName(c.Attr); err != nil {
				return err
			}
			if c.Value.kind != KindNumber {
				return invalid("comparison with something else than a number")
			}
		default:
			return invalid("unknown test")
		}
	}
	return nil
}

func validateAttr(name string, v Value) error {
	if err := validateName(name); err != nil {
		return err
	}
	switch v.kind {
	case KindNumber, KindBytes:
		return nil
	case KindString:
		if !utf8.ValidString(v.str) {
			return invalid("string value is not valid UTF-8")
		}
		return nil
	default:
		return invalid("attribute without a value")
	}
}

func validateName(name string) error {
	if name == "" {
		return invalid("attribute name is empty")
	}
	if len(name) > MaxName {
		return invalid("attribute name is too long")
	}
	if !utf8.ValidString(name) {
		return invalid("attribute name is not valid UTF-8")
	}
	return nil
}

// maxExpires is the last second of the year 9999.
const maxExpires = 253402300799

func validateExpires(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	if sec := wholeSeconds(t); sec < 1 || sec > maxExpires {
		return invalid("expiry is out of range")
	}
	return nil
}

// repeatsKey reports whether two operations have the same key. It compares the keys of
// small transactions, which are most, pair by pair, without a map.
func repeatsKey(ops []Op) bool {
	if len(ops) <= 8 {
		for i := range ops {
			for j := range i {
				if ops[i].Key == ops[j].Key {
					return true
				}
			}
		}
		return false
	}
	seen := make(map[Key]struct{}, len(ops))
	for i := range ops {
		seen[ops[i].Key] = struct{}{}
	}
	return len(seen) < len(ops)
}

// keyProblem describes what is wrong with a key part, or returns "".
func keyProblem(s string) string {
	if s == "" {
		return "is empty"
	}
	if len(s) > MaxKey {
		return "is too long"
	}
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c == 0x7f {
			return "has a control character"
		}
		if c >= utf8.RuneSelf {
			return wideKeyProblem(s[i:])
		}
	}
	return ""
}

// wideKeyProblem is the part of keyProblem for characters beyond ASCII.
func wideKeyProblem(s string) string {
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return "has a control character"
		}
	}
	return ""
}

func invalid(rule string) error { return fmt.Errorf("%w: %s", ErrInvalid, rule) }
