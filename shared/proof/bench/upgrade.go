package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
)

// Target says where a relay is.
type Target struct {
	// Addr is host and port for TCP.
	Addr string
	// Host is what the relay is called: in the request and, unless TLS names
	// another, in its certificate.
	Host string
	// TLS is nil for a relay that is reached as by a proxy which has ended TLS:
	// without it, and with X-Forwarded-Proto.
	TLS *tls.Config
	// AelosSecret signs the tokens of Aelos peers.
	AelosSecret []byte
}

// Where the relays of each protocol are.
const (
	skaldPath = "/v1/ws"
	aelosPath = "/v1/aelos"
)

const acceptGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// dial opens a connection that has callTime for what it does next; see
// conn.within.
func (t *Target) dial(ctx context.Context, path string) (*conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, fmt.Errorf("failed to connect: %w", err)
	}
	c := &conn{nc: nc, buf: make([]byte, readStart)}
	c.within(callTime)
	if t.TLS != nil {
		tc := tls.Client(nc, t.TLS)
		if err := tc.Handshake(); err != nil {
			_ = nc.Close()
			return nil, fmt.Errorf("failed to begin TLS: %w", err)
		}
		c.nc = tc
	}
	if err := c.upgrade(t, path); err != nil {
		c.abort()
		return nil, err
	}
	return c, nil
}

func (c *conn) upgrade(t *Target, path string) error {
	var nonce [16]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return fmt.Errorf("failed to draw a key: %w", err)
	}
	key := base64.StdEncoding.EncodeToString(nonce[:])
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n", path, t.Host, key)
	if t.TLS == nil {
		request = append(request, "X-Forwarded-Proto: https\r\n"...)
	}
	if err := c.write(append(request, "\r\n"...)); err != nil {
		return err
	}
	for {
		head, _, ok := bytes.Cut(c.buf[c.r:c.w], []byte("\r\n\r\n"))
		if ok {
			err := checkAnswer(head, key)
			c.r += len(head) + 4
			return err
		}
		if c.w-c.r > 16<<10 {
			return errors.New("relay answers the upgrade at too great length")
		}
		if err := c.more(c.w - c.r + 1); err != nil {
			return err
		}
	}
}

// checkAnswer checks the answer to an upgrade with this key.
func checkAnswer(head []byte, key string) error {
	lines := bytes.Split(head, []byte("\r\n"))
	if !bytes.HasPrefix(lines[0], []byte("HTTP/1.1 101")) {
		return fmt.Errorf("relay refused the upgrade: %.80q", lines[0])
	}
	sum := sha1.Sum([]byte(key + acceptGUID))
	want := base64.StdEncoding.EncodeToString(sum[:])
	for _, line := range lines[1:] {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte("Sec-WebSocket-Accept")) && string(bytes.TrimSpace(value)) == want {
			return nil
		}
	}
	return errors.New("relay answered the upgrade of someone else")
}

// rawConn is the transport under TLS.
func rawConn(nc net.Conn) net.Conn {
	if t, ok := nc.(*tls.Conn); ok {
		return t.NetConn()
	}
	return nc
}
