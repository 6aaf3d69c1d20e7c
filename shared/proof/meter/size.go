package meter

import (
	"blindpost/shared/table"
	"blindpost/shared/table/dynamo/layout"
)

// Size is the size in bytes that DynamoDB counts for an item: all names and values.
func Size(it table.Item) int {
	size := len(layout.Partition) + len(it.Key.Partition) + len(layout.Sort) + len(it.Key.Sort)
	if !it.Expires.IsZero() {
		size += len(layout.Expires) + numberSize(it.Expires.Unix())
	}
	for attr, v := range it.Attrs {
		size += len(layout.Name(attr))
		switch v.Kind() {
		case table.KindString:
			size += len(v.Str())
		case table.KindNumber:
			size += numberSize(v.Num())
		case table.KindBytes:
			size += len(v.Raw())
		}
	}
	return size
}

// numberSize is the size that DynamoDB counts for a number: one byte, one for each two
// significant digits (without trailing zeros), and one for a minus. AWS documents it as
// approximate; others measured that a single digit counts as two and that a minus costs
// one byte.
func numberSize(n int64) int {
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
