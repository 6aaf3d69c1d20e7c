package skald

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
)

// countedDial keeps what one connection writes, to look at WebSocket frames.
type countedDial struct {
	DialOptions
	mu      sync.Mutex
	written []byte
}

func (d *countedDial) options() DialOptions {
	o := d.DialOptions
	dial := o.DialContext
	o.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		return &countedConn{c, d}, err
	}
	return o
}

type countedConn struct {
	net.Conn
	d *countedDial
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.d.mu.Lock()
	c.d.written = append(c.d.written, p...)
	c.d.mu.Unlock()
	return c.Conn.Write(p)
}

// frames returns the sizes of the WebSocket frames written so far, headers
// included.
func (d *countedDial) frames(t *testing.T) []int {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	_, rest, ok := bytes.Cut(d.written, []byte("\r\n\r\n"))
	if !ok {
		t.Fatal("no upgrade request")
	}
	var sizes []int
	for len(rest) > 0 {
		size, header := int(rest[1]&0x7f), 2+4 // with the mask
		switch size {
		case 126:
			size, header = int(binary.BigEndian.Uint16(rest[2:])), header+2
		case 127:
			size, header = int(binary.BigEndian.Uint64(rest[2:])), header+8
		}
		sizes = append(sizes, header+size)
		rest = rest[header+size:]
	}
	return sizes
}
