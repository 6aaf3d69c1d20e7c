package skald

import (
	"encoding/binary"
	"io"
	"sync"
)

// lockedRand makes a source of randomness safe for concurrent use.
type lockedRand struct {
	mu sync.Mutex
	r  io.Reader
}

var _ io.Reader = (*lockedRand)(nil)

func (c *lockedRand) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return io.ReadFull(c.r, p)
}

// fraction returns a number from [0, 1); 0 if the source fails, which only
// costs jitter.
func (c *lockedRand) fraction() float64 {
	var b [8]byte
	if _, err := c.Read(b[:]); err != nil {
		return 0
	}
	return float64(binary.BigEndian.Uint64(b[:])>>11) / (1 << 53)
}
