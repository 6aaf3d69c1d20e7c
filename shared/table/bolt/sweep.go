package bolt

import (
	"bytes"
	"encoding/binary"
	"time"

	"blindpost/shared/table"
)

// sweep removes up to limit expired items, the oldest first, and returns how
// many entries of the index it is done with.
func (b *buckets) sweep(now time.Time, limit int) (int, error) {
	var due [][]byte
	cursor := b.expiry.Cursor()
	for k, _ := cursor.First(); k != nil && len(due) < limit; k, _ = cursor.Next() {
		if len(k) > expiryKeyPrefix && int64(binary.BigEndian.Uint64(k)) > now.Unix() {
			break
		}
		// A copy, as deleting moves what the cursor points to.
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
		// The index follows the items; looking again costs little and never
		// removes what is not expired.
		key := k[expiryKeyPrefix:]
		stored := b.items.Get(key)
		if stored == nil {
			continue
		}
		if expires, err := table.DecodeExpires(stored); err != nil || !expiredBy(expires, now) {
			continue
		}
		b.touch(key, nil)
		if err := b.items.Delete(key); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}
