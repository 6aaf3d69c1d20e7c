// Package layout says how table/dynamo stores an item: which attributes it has
// in DynamoDB, and what it weighs there. It knows nothing of AWS, so that the
// price of an item can be told without a client of AWS.
//
// An item has the attributes pk and sk (its key, strings), ttl if it expires
// (Unix seconds, a number), and its own attributes under their own names. A name
// that could be taken for one of ours gets an escape in front. That costs the
// usual item 4 bytes, and 9 more if it expires.
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
	// Marker is an attribute without a meaning, an empty string. An update that
	// neither sets nor adds anything sets it: then it creates an absent item,
	// which an update that only removes is not documented to do.
	Marker = escape
)

// escape stands in front of names that are ours or begin with it.
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

// Size is what DynamoDB counts for an item, in bytes: all names and values.
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

// NumberSize is what DynamoDB counts for a number: one byte, one more for each
// two significant digits (zeros at the end are none), and one for a minus. AWS
// documents it as approximate; that an odd digit counts as two and what the
// minus costs has been measured by others.
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
