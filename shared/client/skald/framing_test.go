package skald

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"errors"
	"runtime"
	"testing"
)

func zlibbed(t testing.TB, plaintext []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(plaintext); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFrame(t *testing.T) {
	noise := make([]byte, 5000)
	_, _ = rand.Read(noise)
	for _, c := range []struct {
		name        string
		plaintext   []byte
		compression byte
	}{
		{"nothing", nil, 0},
		{"short", []byte("{}"), 0},
		{"at the threshold", bytes.Repeat([]byte("a"), 1024), 0},
		{"above it", bytes.Repeat([]byte("a"), 1025), 1},
		{"does not compress", noise, 0},
		{"as large as allowed", make([]byte, MaxPlaintext), 1},
	} {
		framed, err := Frame(c.plaintext)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if framed[0] != 1 || framed[1] != c.compression {
			t.Errorf("%s: starts with %x", c.name, framed[:2])
		}
		if len(framed) > 2+len(c.plaintext) {
			t.Errorf("%s: grew from %d to %d bytes", c.name, len(c.plaintext), len(framed))
		}
		if back, err := Unframe(framed); err != nil || !bytes.Equal(back, c.plaintext) {
			t.Errorf("%s: %d bytes came back: %v", c.name, len(back), err)
		}
	}
	if _, err := Frame(make([]byte, MaxPlaintext+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("framed too much: %v", err)
	}
}

func TestUnframe(t *testing.T) {
	packed := zlibbed(t, []byte("hello"))
	damaged := bytes.Clone(packed)
	damaged[len(damaged)-1] ^= 1 // the checksum
	for _, c := range []struct {
		name   string
		framed []byte
		want   string
		ok     bool
	}{
		{"plain", []byte("\x01\x00hello"), "hello", true},
		{"plain and empty", []byte("\x01\x00"), "", true},
		{"compressed though short", append([]byte{1, 1}, packed...), "hello", true},
		{"nothing", nil, "", false},
		{"one byte", []byte{1}, "", false},
		{"version 0", []byte("\x00\x00hello"), "", false},
		{"pipe signalling", []byte("\x02\x00hello"), "", false},
		{"version 3", []byte("\x03\x00hello"), "", false},
		{"unknown compression", []byte("\x01\x02hello"), "", false},
		{"not zlib", []byte("\x01\x01hello"), "", false},
		{"cut short", append([]byte{1, 1}, packed[:len(packed)-2]...), "", false},
		{"damaged", append([]byte{1, 1}, damaged...), "", false},
		{"more behind it", append(append([]byte{1, 1}, packed...), 0), "", false},
		{"empty stream", []byte{1, 1}, "", false},
	} {
		got, err := Unframe(c.framed)
		if (err == nil) != c.ok || string(got) != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if !c.ok && !errors.Is(err, ErrFraming) {
			t.Errorf("%s: %v is no ErrFraming", c.name, err)
		}
	}
}

// 16 MiB of zeros fit into a stored message many times. They must not be unpacked.
func TestZipBomb(t *testing.T) {
	bomb := append([]byte{1, 1}, zlibbed(t, make([]byte, 16<<20))...)
	if len(bomb) > MaxStoredCiphertext-TagSize {
		t.Fatalf("bomb of %d bytes would not be delivered", len(bomb))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Unframe(bomb)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrFraming) || !errors.Is(err, ErrTooLarge) {
		t.Errorf("unpacked: %v", err)
	}
	// io.ReadAll grows its buffer in steps, which add up to several times the
	// limit but not to the bomb.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8*MaxPlaintext {
		t.Errorf("allocated %d bytes for it", allocated)
	}
}

func FuzzUnframe(f *testing.F) {
	f.Add([]byte("\x01\x00{}"))
	f.Add(append([]byte{1, 1}, zlibbed(f, []byte("hello"))...))
	f.Add(append([]byte{1, 1}, zlibbed(f, make([]byte, 10000))...))
	f.Add([]byte("\x02\x00"))
	f.Add([]byte{1, 1, 0x78, 0x9c})
	f.Add([]byte{1, 1, 0x78, 0xbb, 0, 0, 0, 0}) // wants a preset dictionary
	f.Fuzz(func(t *testing.T, framed []byte) {
		plaintext, err := Unframe(framed)
		if err != nil {
			if !errors.Is(err, ErrFraming) {
				t.Fatalf("%v is no ErrFraming", err)
			}
			return
		}
		if len(plaintext) > MaxPlaintext {
			t.Fatalf("%d bytes", len(plaintext))
		}
		again, err := Frame(plaintext)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Unframe(again); err != nil || !bytes.Equal(back, plaintext) {
			t.Fatalf("framed again, %d bytes came back: %v", len(back), err)
		}
	})
}
