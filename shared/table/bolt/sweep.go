package bolt

import (
	"bytes"
	"encoding/binary"
	"time"

	"blindpost/shared/table"
)

// sweep removes up to limit expired items, the oldest first, and returns how many
// entries of the index it removed.
func (b *buckets) sweep(now time.Time, limit int) (int, error) {
	var due [][]byte
	cursor := b.expiry.Cursor()
	for k, _ := cursor.First(); k != nil && len(due) < limit; k, _ = cursor.Next() {
		if len(k) > expiryKeyPrefix && int64(binary.BigEndian.Uint64(k)) > now.Unix() {
			break
		}
		// A copy, because a deletion moves the memory that the cursor points to.
		due = append(due, bytes.Clone(k))
	}
	for _, k := range due {
		b.dirty = true
		if err := b.expiry.Delete(k); err != nil {
			return 0, err
		}
		if len(k) <= expiryKeyPrefix {
			continue
		}
		// The index changes with the items, but reading the item costs little and ensures
		// that none is removed too early.
		key := k[expiryKeyPrefix:]
		if !table.Expired(b.items.Get(key), now) {
			continue
		}
		b.touch(key, nil)
		if err := b.items.Delete(key); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}
