package skald

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"slices"
	"sync"
)

// The two header bytes of a plaintext.
const (
	framingVersion = 0x01
	framingPipe    = 0x02 // reserved for pipe signalling
	framingHeader  = 2

	compressionNone = 0x00
	compressionZlib = 0x01
)

// compressAbove is the size in bytes from which compression is tried.
const compressAbove = 1024

// zlibWriters saves the 800 KB that a zlib writer allocates.
var zlibWriters = sync.Pool{New: func() any { return zlib.NewWriter(io.Discard) }}

// Frame prepends the version and compression bytes to a plaintext, and compresses it if it
// is longer than 1 KiB and becomes smaller. A plaintext over [MaxPlaintext] is
// [ErrTooLarge].
func Frame(plaintext []byte) ([]byte, error) {
	if len(plaintext) > MaxPlaintext {
		return nil, fmt.Errorf("failed to frame %d bytes: %w", len(plaintext), ErrTooLarge)
	}
	if len(plaintext) > compressAbove {
		packed, err := deflate(plaintext)
		if err != nil {
			return nil, err
		}
		if len(packed) < framingHeader+len(plaintext) {
			return packed, nil
		}
	}
	return slices.Concat([]byte{framingVersion, compressionNone}, plaintext), nil
}

func deflate(plaintext []byte) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(len(plaintext)/2 + framingHeader)
	b.Write([]byte{framingVersion, compressionZlib})
	w := zlibWriters.Get().(*zlib.Writer)
	defer zlibWriters.Put(w)
	w.Reset(&b)
	if _, err := w.Write(plaintext); err != nil {
		return nil, fmt.Errorf("failed to compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("failed to compress: %w", err)
	}
	return b.Bytes(), nil
}

// Unframe reverses [Frame]. It never expands beyond [MaxPlaintext], and refuses
// unknown versions and compressions, damaged streams and bytes after a stream
// with [ErrFraming].
func Unframe(framed []byte) ([]byte, error) {
	if len(framed) < framingHeader {
		return nil, fmt.Errorf("%w: %d bytes", ErrFraming, len(framed))
	}
	switch framed[0] {
	case framingVersion:
	case framingPipe:
		return nil, fmt.Errorf("%w: pipe signalling is not supported", ErrFraming)
	default:
		return nil, fmt.Errorf("%w: version %d", ErrFraming, framed[0])
	}
	body := framed[framingHeader:]
	switch framed[1] {
	case compressionNone:
		if len(body) > MaxPlaintext {
			return nil, fmt.Errorf("%w: %d bytes: %w", ErrFraming, len(body), ErrTooLarge)
		}
		return body, nil
	case compressionZlib:
		return inflate(body)
	}
	return nil, fmt.Errorf("%w: compression %d", ErrFraming, framed[1])
}

func inflate(body []byte) ([]byte, error) {
	// A bytes.Reader is an io.ByteReader, of which zlib reads no byte too many, so trailing
	// bytes can be detected.
	src := bytes.NewReader(body)
	r, err := zlib.NewReader(src)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFraming, err)
	}
	defer r.Close()
	plaintext, err := io.ReadAll(io.LimitReader(r, MaxPlaintext+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFraming, err)
	}
	if len(plaintext) > MaxPlaintext {
		return nil, fmt.Errorf("%w: expands over %d bytes: %w", ErrFraming, MaxPlaintext, ErrTooLarge)
	}
	if src.Len() > 0 {
		return nil, fmt.Errorf("%w: %d bytes after the compressed stream", ErrFraming, src.Len())
	}
	return plaintext, nil
}
