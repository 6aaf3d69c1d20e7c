package server

import (
	"math/bits"
	"sync"
)

// Buffers come from pools of size classes, powers of two from 1 KiB to 8 MiB, so
// that a connection holds one only while there is traffic and a large message
// does not leave a large buffer behind.
const (
	minClass = 10
	maxClass = 23
)

var blocks [maxClass + 1]sync.Pool

// block is a pooled buffer. It is passed by pointer, so that giving it back allocates
// nothing.
type block struct {
	b []byte
}

// takeBlock returns an empty block with room for at least n bytes.
func takeBlock(n int) *block {
	class := max(bits.Len(uint(max(n, 1)-1)), minClass)
	if class > maxClass {
		return &block{b: make([]byte, 0, n)}
	}
	if b, ok := blocks[class].Get().(*block); ok {
		return b
	}
	return &block{b: make([]byte, 0, 1<<class)}
}

// release gives the block back; nil is allowed.
func (b *block) release() {
	if b == nil {
		return
	}
	class := bits.Len(uint(cap(b.b))) - 1
	if class < minClass || class > maxClass || cap(b.b) != 1<<class {
		return
	}
	b.b = b.b[:0]
	blocks[class].Put(b)
}

// withRoom returns a block with the bytes of b and room for n more. b may be nil and
// must not be used afterwards.
func (b *block) withRoom(n int) *block {
	if b == nil {
		return takeBlock(n)
	}
	if cap(b.b)-len(b.b) >= n {
		return b
	}
	larger := takeBlock(max(len(b.b)+n, 2*cap(b.b)))
	larger.b = append(larger.b, b.b...)
	b.release()
	return larger
}
