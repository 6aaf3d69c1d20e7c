// Package layout defines how table/dynamo stores an item: its attributes in DynamoDB. It
// imports nothing of AWS, so that costs can be computed without an AWS client.
//
// An item has the attributes pk and sk (its key, strings), ttl if it expires (Unix
// seconds, a number), and its own attributes under their own names. A name that could be
// confused with one of ours gets an escape prefix. That costs the usual item 4 bytes, and
// 9 more if it expires.
package layout

import "strings"

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
