// Package layout defines how table/dynamo stores an item: its attributes in DynamoDB, and
// its size there. It imports nothing of AWS, so that costs can be computed without an AWS
// client.
//
// An item has the attributes pk and sk (its key, strings), ttl if it expires (Unix
// seconds, a number), and its own attributes under their own names. A name that could be
// confused with one of ours gets an escape prefix. That costs the usual item 4 bytes, and
// 9 more if it expires.
package layout

import (
	"strings"

	"blindpost/shared/table"
)

// Names of the attributes that are ours.
const (
	Partition = "pk"
	Sort      = "sk"
	Expires   = "ttl"
	// Marker is an empty string without a meaning. An update that only removes attributes
	// sets it, so that it creates an absent item; DynamoDB does not document that such
	// an update would do so by itself.
	Marker = escape
)

// escape is the prefix of names that equal one of ours or begin with it.
const escape = "="

// Name returns the name under which an attribute is stored.
func Name(attr string) string {
	if attr == Partition || attr == Sort || attr == Expires || strings.HasPrefix(attr, escape) {
		return escape + attr
	}
	return attr
}

// Attr returns the attribute that is stored under a name; ok is false if the
// name is one of ours.
func Attr(name string) (attr string, ok bool) {
	switch name {
	case Partition, Sort, Expires, Marker:
		return "", false
	}
	return strings.TrimPrefix(name, escape), true
}

// Size is the size in bytes that DynamoDB counts for an item: all names and values.
func Size(it table.Item) int {
	size := len(Partition) + len(it.Key.Partition) + len(Sort) + len(it.Key.Sort)
	if !it.Expires.IsZero() {
		size += len(Expires) + NumberSize(it.Expires.Unix())
	}
	for attr, v := range it.Attrs {
		size += len(Name(attr))
		switch v.Kind() {
		case table.KindString:
			size += len(v.Str())
		case table.KindNumber:
			size += NumberSize(v.Num())
		case table.KindBytes:
			size += len(v.Raw())
		}
	}
	return size
}

// NumberSize is the size that DynamoDB counts for a number: one byte, one for each two
// significant digits (without trailing zeros), and one for a minus. AWS documents it as
// approximate; others measured that a single digit counts as two and that a minus costs
// one byte.
func NumberSize(n int64) int {
	size := 1
	if n < 0 {
		size++
	}
	for n != 0 && n%10 == 0 {
		n /= 10
	}
	digits := 0
	for ; n != 0; n /= 10 {
		digits++
	}
	return size + (digits+1)/2
}
