package table

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

var someKey = Key{Partition: "ns/1", Sort: "m/1"}

func message() Attrs {
	return Attrs{
		"id":   String("0190163d-8694-739b-aea5-966c26f8ad91"),
		"from": Bytes(bytes.Repeat([]byte{7}, 32)),
		"seq":  Number(1234567),
		"n":    Bytes(bytes.Repeat([]byte{8}, 12)),
		"c":    Bytes(bytes.Repeat([]byte{9}, 260)),
		"live": Number(0),
	}
}

func equalItems(a, b Item) bool {
	if a.Key != b.Key || !a.Expires.Equal(b.Expires) || len(a.Attrs) != len(b.Attrs) {
		return false
	}
	for name, v := range a.Attrs {
		if !v.Equal(b.Attrs[name]) {
			return false
		}
	}
	return true
}

func TestEncodingRoundTrip(t *testing.T) {
	many := Attrs{}
	for i := range 300 {
		many[strings.Repeat("n", i%200+1)+string(rune('a'+i%26))] = Number(int64(i) - 150)
	}
	cases := []struct {
		name    string
		attrs   Attrs
		expires time.Time
	}{
		{"nothing", nil, time.Time{}},
		{"empty values", Attrs{"s": String(""), "b": Bytes(nil), "n": Number(0)}, time.Time{}},
		{"extreme numbers", Attrs{"a": Number(math.MaxInt64), "b": Number(math.MinInt64), "c": Number(-1)}, time.Time{}},
		{"a message", message(), time.Unix(1_900_000_000, 0)},
		{"many attributes", many, time.Unix(1, 0)},
		{"the last second", Attrs{"a": String("ä€😀")}, time.Unix(maxExpires, 0)},
		{"large", Attrs{"a": Bytes(make([]byte, 300<<10)), "b": String(strings.Repeat("x", 90<<10))}, time.Time{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := Item{Key: someKey, Attrs: c.attrs, Expires: c.expires}
			b := AppendItem([]byte("before"), c.attrs, c.expires)
			if !bytes.HasPrefix(b, []byte("before")) {
				t.Fatal("what was there before is gone")
			}
			b = b[len("before"):]
			for _, decode := range []func() (Item, error){
				func() (Item, error) { return DecodeItem(someKey, b) },
				func() (Item, error) { return DecodeItemString(someKey, string(b)) },
			} {
				got, err := decode()
				if err != nil {
					t.Fatal(err)
				}
				if !equalItems(got, want) {
					t.Fatalf("got %v, want %v", got, want)
				}
				if got.Attrs == nil {
					t.Fatal("an item without attributes looks like no item")
				}
			}
			expires, err := DecodeExpires(b)
			if err != nil || !expires.Equal(c.expires) {
				t.Fatalf("expires %v, %v", expires, err)
			}
			if again := AppendItem(nil, c.attrs, c.expires); !bytes.Equal(again, b) {
				t.Fatal("encoding depends on the order of the map")
			}
		})
	}
}

func TestExpiryIsRoundedUp(t *testing.T) {
	b := AppendItem(nil, nil, time.Unix(100, 1))
	got, err := DecodeExpires(b)
	if err != nil || !got.Equal(time.Unix(101, 0)) {
		t.Fatalf("got %v, %v", got, err)
	}
}

// Every truncation and every changed byte is either refused or decodes to
// something; it never panics.
func TestDecodeCorrupt(t *testing.T) {
	good := AppendItem(nil, message(), time.Unix(1_900_000_000, 0))
	for n := range good {
		if _, err := DecodeItem(someKey, good[:n]); err == nil {
			t.Fatalf("accepted the first %d of %d bytes", n, len(good))
		}
	}
	for i := range good {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := bytes.Clone(good)
			bad[i] ^= flip
			_, errBytes := DecodeItem(someKey, bad)
			_, errString := DecodeItemString(someKey, string(bad))
			if (errBytes == nil) != (errString == nil) {
				t.Fatalf("the two decoders disagree on byte %d", i)
			}
		}
	}
	huge := uint64(math.MaxUint64)
	cases := map[string][]byte{
		"empty":           {},
		"version":         {2, 0, 0, 0, 0},
		"zero version":    {0, 0, 0, 0, 0},
		"trailing byte":   append(bytes.Clone(good), 0),
		"expiry too late": append([]byte{1}, binary.AppendUvarint(nil, maxExpires+1)...),
		"huge count":      append(binary.AppendUvarint([]byte{1, 0}, huge), 0, 0),
		"huge text":       append(binary.AppendUvarint([]byte{1, 0, 0}, huge), 0),
		"huge raw":        binary.AppendUvarint([]byte{1, 0, 0, 0}, huge),
		"lengths wrap":    binary.AppendUvarint(binary.AppendUvarint([]byte{1, 0, 0}, 1<<63), 1<<63),
		"long varint":     append([]byte{1}, bytes.Repeat([]byte{0x80}, 20)...),
		"unsorted names":  {1, 0, 2, 2, 0, 1, byte(KindNumber), 0, 1, byte(KindNumber), 0, 'b', 'a'},
		"a name twice":    {1, 0, 2, 2, 0, 1, byte(KindNumber), 0, 1, byte(KindNumber), 0, 'a', 'a'},
		"empty name":      {1, 0, 1, 0, 0, 0, byte(KindNumber), 0},
		"unknown kind":    {1, 0, 1, 1, 0, 1, 9, 0, 'a'},
		"unused text":     {1, 0, 0, 1, 0, 'a'},
		"unused raw":      {1, 0, 0, 0, 1, 'a'},
		"unused header":   {1, 0, 0, 0, 0, 0, 0, 0},
	}
	for name, b := range cases {
		if it, err := DecodeItem(someKey, b); err == nil {
			t.Errorf("%s: decoded to %v", name, it)
		}
		if _, err := DecodeItemString(someKey, string(b)); err == nil {
			t.Errorf("%s: decoded from a string", name)
		}
	}
}

func TestDecodedItemIsIndependent(t *testing.T) {
	b := AppendItem(nil, Attrs{"a": Bytes([]byte("aa")), "b": Bytes([]byte("bb")), "s": String("ss")}, time.Time{})
	it, err := DecodeItem(someKey, b)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(it.Attrs["a"].Raw(), 'X') // must not run over into b
	for i := range b {
		b[i] = 'Z'
	}
	want := Attrs{"a": Bytes([]byte("aa")), "b": Bytes([]byte("bb")), "s": String("ss")}
	if !equalItems(it, Item{Key: someKey, Attrs: want}) {
		t.Fatalf("item changed to %v", it)
	}
}

func FuzzDecodeItem(f *testing.F) {
	f.Add(AppendItem(nil, message(), time.Unix(1_900_000_000, 0)))
	f.Add(AppendItem(nil, nil, time.Time{}))
	f.Add(AppendItem(nil, Attrs{"a": String(""), "b": Bytes(nil), "c": Number(math.MinInt64)}, time.Unix(1, 0)))
	f.Add([]byte{1, 0, 2, 2, 0, 1, byte(KindNumber), 0, 1, byte(KindNumber), 0, 'b', 'a'})
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		it, err := DecodeItem(someKey, b)
		fromString, errString := DecodeItemString(someKey, string(b))
		if (err == nil) != (errString == nil) || !equalItems(it, fromString) {
			t.Fatal("the two decoders disagree")
		}
		if !bytes.Equal(b, before) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		expires, err := DecodeExpires(b)
		if err != nil || !expires.Equal(it.Expires) {
			t.Fatalf("expiry alone is %v, %v; with the item %v", expires, err, it.Expires)
		}
		again, err := DecodeItem(someKey, AppendItem(nil, it.Attrs, it.Expires))
		if err != nil || !equalItems(again, it) {
			t.Fatalf("not the same after another round: %v", err)
		}
	})
}

func BenchmarkDecodeItem(b *testing.B) {
	enc := AppendItem(nil, message(), time.Unix(1_900_000_000, 0))
	str := string(enc)
	b.Run("bytes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = DecodeItem(someKey, enc)
		}
	})
	b.Run("string", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = DecodeItemString(someKey, str)
		}
	})
	b.Run("expires", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = DecodeExpires(enc)
		}
	})
}

func BenchmarkAppendItem(b *testing.B) {
	attrs := message()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendItem(buf[:0], attrs, time.Unix(1_900_000_000, 0))
	}
}

func TestDecodeAllocates(t *testing.T) {
	enc := AppendItem(nil, message(), time.Unix(1_900_000_000, 0))
	str := string(enc)
	// The map and its table, the text, the raw bytes.
	if n := testing.AllocsPerRun(100, func() { _, _ = DecodeItem(someKey, enc) }); n > 4 {
		t.Errorf("DecodeItem allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = DecodeItemString(someKey, str) }); n > 3 {
		t.Errorf("DecodeItemString allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = DecodeExpires(enc) }); n > 0 {
		t.Errorf("DecodeExpires allocates %v times", n)
	}
	buf := make([]byte, 0, 1024)
	attrs := message()
	if n := testing.AllocsPerRun(100, func() { buf = AppendItem(buf[:0], attrs, time.Time{}) }); n > 0 {
		t.Errorf("AppendItem allocates %v times", n)
	}
	if !reflect.DeepEqual(attrs, message()) {
		t.Error("AppendItem changed its input")
	}
}
