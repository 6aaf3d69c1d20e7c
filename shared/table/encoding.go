package table

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"
)

// The encoding of an item's attributes and expiry, as table/mem and table/bolt
// store it. The key is stored beside it. All integers are varints.
//
//	version     1 byte, 1
//	expires     Unix seconds, 0 never
//	count       number of attributes
//	text length, raw length
//	count times, in ascending order of the names:
//	    name length, kind (1 byte), then
//	    string, bytes: length
//	    number:        the number, zigzag
//	text        for each attribute its name and, for a string, its value
//	raw         for each bytes attribute its value
//
// Names and strings are adjacent, so that decoding copies all of them with one
// allocation (with none from a string), and all bytes with another.
const encodingVersion = 1

// attrHeader is the smallest header of an attribute: name length, kind, one more.
const attrHeader = 3

var errCorrupt = errors.New("stored item is corrupt")

// AppendItem appends the encoding to dst. It keeps nothing of attrs.
func AppendItem(dst []byte, attrs Attrs, expires time.Time) []byte {
	type attr struct {
		name string
		v    Value
	}
	var few [12]attr // enough for the items of the relay
	sorted := few[:0]
	text, raw := 0, 0
	for name, v := range attrs {
		sorted = append(sorted, attr{name, v})
		text += len(name) + len(v.str)
		raw += len(v.raw)
	}
	slices.SortFunc(sorted, func(a, b attr) int { return strings.Compare(a.name, b.name) })

	dst = slices.Grow(dst, 16+8*len(sorted)+text+raw)
	dst = append(dst, encodingVersion)
	if expires.IsZero() {
		dst = append(dst, 0)
	} else {
		dst = binary.AppendUvarint(dst, uint64(wholeSeconds(expires)))
	}
	dst = binary.AppendUvarint(dst, uint64(len(sorted)))
	dst = binary.AppendUvarint(dst, uint64(text))
	dst = binary.AppendUvarint(dst, uint64(raw))
	for i := range sorted {
		v := &sorted[i].v
		dst = binary.AppendUvarint(dst, uint64(len(sorted[i].name)))
		dst = append(dst, byte(v.kind))
		switch v.kind {
		case KindString:
			dst = binary.AppendUvarint(dst, uint64(len(v.str)))
		case KindBytes:
			dst = binary.AppendUvarint(dst, uint64(len(v.raw)))
		default:
			dst = binary.AppendUvarint(dst, uint64(v.num)<<1^uint64(v.num>>63))
		}
	}
	for i := range sorted {
		dst = append(dst, sorted[i].name...)
		dst = append(dst, sorted[i].v.str...)
	}
	for i := range sorted {
		dst = append(dst, sorted[i].v.raw...)
	}
	return dst
}

// DecodeItem decodes what AppendItem wrote. It keeps nothing of b. For a malformed b it
// returns an error and never panics; its allocations are bounded by len(b), not by the
// lengths in b.
func DecodeItem(k Key, b []byte) (Item, error) { return decode(k, b) }

// DecodeItemString is DecodeItem for an encoding in a string. The strings of the item
// share its memory, which saves a copy and keeps s alive.
func DecodeItemString(k Key, s string) (Item, error) { return decode(k, s) }

// DecodeExpires reads only the expiry of an encoded item.
func DecodeExpires[T string | []byte](b T) (time.Time, error) {
	if len(b) < 2 || b[0] != encodingVersion {
		return time.Time{}, errCorrupt
	}
	sec, pos := uvarint(b, 1)
	if pos < 0 || sec > maxExpires {
		return time.Time{}, errCorrupt
	}
	if sec == 0 {
		return time.Time{}, nil
	}
	return time.Unix(int64(sec), 0).UTC(), nil
}

// Expired reports whether an encoded item is absent. An encoding that cannot be decoded
// counts as present: its reader gets an error.
func Expired[T string | []byte](enc T, now time.Time) bool {
	expires, err := DecodeExpires(enc)
	return err == nil && (&Item{Expires: expires}).Expired(now)
}

func decode[T string | []byte](k Key, b T) (Item, error) {
	expires, err := DecodeExpires(b)
	if err != nil {
		return Item{}, err
	}
	_, pos := uvarint(b, 1)
	count, pos := uvarint(b, pos)
	textLen, pos := uvarint(b, pos)
	rawLen, pos := uvarint(b, pos)
	// Lengths are compared one by one, as their sum could wrap around.
	if pos < 0 || textLen > uint64(len(b)-pos) || rawLen > uint64(len(b)-pos)-textLen {
		return Item{}, errCorrupt
	}
	textAt := len(b) - int(textLen) - int(rawLen)
	rawAt := len(b) - int(rawLen)
	if count > uint64(textAt-pos)/attrHeader {
		return Item{}, errCorrupt
	}

	header := b[:textAt]
	text := string(b[textAt:rawAt])
	raw := make([]byte, rawLen)
	copy(raw, b[rawAt:])
	attrs := make(Attrs, count)
	last := ""
	for range count {
		var nameLen, n uint64
		nameLen, pos = uvarint(header, pos)
		if pos < 0 || pos >= len(header) || nameLen > uint64(len(text)) {
			return Item{}, errCorrupt
		}
		kind := Kind(header[pos])
		n, pos = uvarint(header, pos+1)
		if pos < 0 {
			return Item{}, errCorrupt
		}
		name := text[:nameLen]
		text = text[nameLen:]
		if name <= last { // also refuses an empty name
			return Item{}, errCorrupt
		}
		last = name
		switch kind {
		case KindString:
			if n > uint64(len(text)) {
				return Item{}, errCorrupt
			}
			attrs[name] = Value{kind: KindString, str: text[:n]}
			text = text[n:]
		case KindBytes:
			if n > uint64(len(raw)) {
				return Item{}, errCorrupt
			}
			// Without spare capacity: appending to one value must not reach
			// into the next.
			attrs[name] = Value{kind: KindBytes, raw: raw[:n:n]}
			raw = raw[n:]
		case KindNumber:
			attrs[name] = Value{kind: KindNumber, num: int64(n>>1) ^ -int64(n&1)}
		default:
			return Item{}, errCorrupt
		}
	}
	if pos != len(header) || len(text) > 0 || len(raw) > 0 {
		return Item{}, errCorrupt
	}
	return Item{Key: k, Attrs: attrs, Expires: expires}, nil
}

// uvarint reads a varint at pos and returns the position behind it, or -1 if there is
// none. For a pos of -1 it returns -1, so that several reads need only one check.
func uvarint[T string | []byte](b T, pos int) (uint64, int) {
	if pos < 0 {
		return 0, -1
	}
	var n uint64
	for shift := uint(0); pos < len(b) && shift < 64; shift += 7 {
		c := b[pos]
		pos++
		if shift == 63 && c > 1 {
			return 0, -1
		}
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n, pos
		}
	}
	return 0, -1
}
