// Package table is the storage contract of the relay: items under a partition
// and a sort key, with the semantics of DynamoDB as the ceiling. Package
// table/tabletest holds the suite that every implementation passes.
//
// What an implementation promises:
//
//   - Every read sees all writes that had returned before it began (strongly
//     consistent reads).
//   - Write and Transact are atomic and durable when they return: all or
//     nothing, also across a crash. (An implementation that keeps nothing, like
//     table/mem, says so.)
//   - Conditions are checked in the same atomic step as the write.
//   - An item whose Expires has come is absent, for reads, conditions and
//     updates alike, from that very moment (expires at T: absent when now >= T),
//     whether or not it has been removed physically. The clock is injected.
//   - The table neither keeps nor changes what it is given; what it returns belongs to
//     the caller.
//
// # When the answer to a write is lost
//
// ErrCondition, ErrBusy, ErrTooLarge and ErrInvalid say that nothing was written. Any
// other error of Write or Transact leaves the outcome uncertain: all of it was done, or
// nothing, or it may still be done a moment later (the connection broke while the request
// was under way, the context ended, the process died). The table does not retry a write
// that it could not recognise as done, and the old item is lost with the answer. So for
// the caller an uncertain write is like a crash at that point, and the next handler, in
// the same process or another, must be able to continue whether the write was done or
// not. Each write is therefore one of these:
//
//   - It can be repeated without harm (a Put of a fixed content, a Delete, an attribute
//     set to a fixed value).
//   - It leaves a trace by which its author recognises it (the id of the stored frame,
//     the connection that joined, went offline or consumed a token). After a failed
//     condition the author first looks for that trace, before it concludes that another
//     handler made the change.
//   - It is a count that may be one too high.
//
// A caller that finds its own write done must still do the steps that follow it.
package table

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limits that hold for every implementation (those of DynamoDB).
const (
	MaxItemSize    = 400 << 10 // bytes: attribute names and values and the key
	MaxTransaction = 100       // operations in one Transact
	MaxRequest     = 4 << 20   // bytes that the operations of one Transact carry
	MaxKey         = 1024      // bytes of a partition key or a sort key, each
	MaxName        = 255       // bytes of an attribute name
)

// Key addresses an item. Both parts are non-empty, valid UTF-8 and free of
// control characters.
type Key struct {
	Partition string
	Sort      string
}

// Kind is the type of a Value.
type Kind uint8

// The kinds of values.
const (
	KindString Kind = iota + 1
	KindNumber
	KindBytes
)

// Value is one attribute: a string, a 64-bit integer or bytes. Empty strings and
// empty bytes are ordinary values. Values of different kinds are never equal and never
// less.
type Value struct {
	kind Kind
	str  string
	num  int64
	raw  []byte
}

// String makes a string value. A string that is stored must be valid UTF-8.
func String(s string) Value { return Value{kind: KindString, str: s} }

// Number makes an integer value.
func Number(n int64) Value { return Value{kind: KindNumber, num: n} }

// Bytes makes a bytes value. It keeps b.
func Bytes(b []byte) Value { return Value{kind: KindBytes, raw: b} }

// Kind returns the kind, 0 for the zero Value (an absent attribute).
func (v Value) Kind() Kind { return v.kind }

// Str returns the string, or "" for another kind.
func (v Value) Str() string { return v.str }

// Num returns the number, or 0 for another kind.
func (v Value) Num() int64 { return v.num }

// Raw returns the bytes, or nil for another kind.
func (v Value) Raw() []byte { return v.raw }

// Attrs are the attributes of an item. Names are non-empty and valid UTF-8, at
// most MaxName bytes.
type Attrs map[string]Value

// Item is a stored item.
type Item struct {
	Key   Key
	Attrs Attrs
	// Expires is when the item becomes absent, in whole seconds; zero means
	// never.
	Expires time.Time
}

// Test is the kind of a condition.
type Test uint8

// The tests. All but Exists, Absent and AttrAbsent fail if the attribute is
// absent.
const (
	// Exists: the item exists. Attr and Value are not used.
	Exists Test = iota + 1
	// Absent: the item does not exist. Attr and Value are not used.
	Absent
	// AttrAbsent: the item does not exist or has no such attribute.
	AttrAbsent
	// Equal: the attribute has this value.
	Equal
	// Less: the attribute is less than the value (numbers only).
	Less
	// AtMost: the attribute is not greater than the value (numbers only).
	AtMost
)

// Cond is one condition on the item that the operation writes. All conditions
// of an operation must hold.
type Cond struct {
	Test  Test
	Attr  string
	Value Value
}

// Constructors of conditions.
func IfExists() Cond                    { return Cond{Test: Exists} }
func IfAbsent() Cond                    { return Cond{Test: Absent} }
func IfNone(attr string) Cond           { return Cond{Test: AttrAbsent, Attr: attr} }
func IfEqual(attr string, v Value) Cond { return Cond{Test: Equal, Attr: attr, Value: v} }
func IfLess(attr string, n int64) Cond  { return Cond{Test: Less, Attr: attr, Value: Number(n)} }
func IfAtMost(attr string, n int64) Cond {
	return Cond{Test: AtMost, Attr: attr, Value: Number(n)}
}

// Action is the kind of an operation.
type Action uint8

// The actions.
const (
	// Put replaces the whole item with Set and Expires.
	Put Action = iota + 1
	// Update changes Set, Add and Remove and leaves the other attributes
	// unchanged; it creates the item if it is absent. An attribute may be in at most
	// one of the three.
	Update
	// Delete removes the item; it is no error if there is none. An expired item goes
	// too, so that it does not come back if the clock is set back.
	Delete
	// Check writes nothing; only its conditions count. Only in Transact.
	Check
)

// Op is one operation.
type Op struct {
	Action Action
	Key    Key
	Conds  []Cond
	// Set sets attributes.
	Set Attrs
	// Add adds to number attributes; an absent attribute counts as 0. Adding
	// to an attribute of another kind is ErrInvalid and changes nothing.
	Add map[string]int64
	// Remove removes attributes.
	Remove []string
	// Expires sets the expiry, rounded up to whole seconds. For Put the zero
	// time means never; for Update it leaves the expiry as it is. Other times
	// lie between 1970 and 9999.
	Expires time.Time
	// KeepForever, in an Update, removes the expiry.
	KeepForever bool
}

// Errors. Implementations return errors that match them with errors.Is. After any other
// error the outcome of a write is uncertain; see the package documentation.
var (
	// ErrNotFound is the answer of Get for an absent item.
	ErrNotFound = errors.New("item not found")
	// ErrCondition says that a condition did not hold. Nothing was written.
	// See [ConditionError].
	ErrCondition = errors.New("condition failed")
	// ErrBusy says that the storage is overloaded or had a conflict with
	// another writer after its own retries. Nothing was written; try later.
	ErrBusy = errors.New("storage is busy")
	// ErrTooLarge says that an item would exceed MaxItemSize, or that a
	// transaction exceeds MaxRequest.
	ErrTooLarge = errors.New("item is too large")
	// ErrInvalid says that the request breaks a rule of this contract.
	ErrInvalid = errors.New("invalid request")
)

// ConditionError says which operation of a transaction failed its conditions.
type ConditionError struct {
	// Op is the index of the first operation that failed, 0 for Write.
	Op int
}

func (e *ConditionError) Error() string {
	return fmt.Sprintf("condition of operation %d failed", e.Op)
}

// Is makes errors.Is(err, ErrCondition) true.
func (e *ConditionError) Is(target error) bool { return target == ErrCondition }

// Query selects items of one partition in the order of their sort keys (bytes).
type Query struct {
	Partition string
	// Prefix selects the sort keys that begin with it; "" all.
	Prefix string
	// After skips sort keys up to and including it; "" none.
	After string
	// Before stops at sort keys that are not less than it; "" none.
	Before string
	// Limit is the largest number of items returned; 0 means all that fit into
	// one page (about 1 MB).
	Limit int
}

// Page is the answer to a Query.
type Page struct {
	Items []Item
	// More says that there may be more items after the last one. A page can
	// be short, even empty, and still have More; Next is then the After for
	// the next page.
	More bool
	Next string
}

// Table is the contract. All methods are safe for concurrent use. A context
// that ends while a write is under way leaves it uncertain.
type Table interface {
	// Get reads one item, or ErrNotFound.
	Get(ctx context.Context, k Key) (Item, error)
	// Query reads items in order.
	Query(ctx context.Context, q Query) (Page, error)
	// Write does one Put, Update or Delete. It returns the item as it was
	// before; the zero Item (nil Attrs) if there was none.
	Write(ctx context.Context, op Op) (old Item, err error)
	// Transact does up to MaxTransaction operations on different keys, all or
	// none.
	Transact(ctx context.Context, ops []Op) error
}

// QueryAll reads all pages of a query.
func QueryAll(ctx context.Context, t Table, q Query) ([]Item, error) {
	var all []Item
	limit := q.Limit
	for {
		p, err := t.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if !p.More || (limit > 0 && len(all) >= limit) {
			return all, nil
		}
		q.After = p.Next
		if limit > 0 {
			q.Limit = limit - len(all)
		}
	}
}
