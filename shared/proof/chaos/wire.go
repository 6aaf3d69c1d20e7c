package chaos

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/dialect/skald"
	proofwire "blindpost/shared/proof/wire"
)

const (
	// patience bounds whatever has to come. It is never waited for in full unless
	// something is wrong.
	patience = 30 * time.Second
)

// way is how a connection reaches the relay. The zero value is the straight way.
type way struct {
	// via is a TCP address to dial instead of the relay's.
	via string
	// from is the local IP address; nil lets the system choose.
	from net.IP
	// small asks the system for a small receive buffer, so that a peer that
	// does not read is noticed soon.
	small bool
}

// wire is a WebSocket connection. One goroutine reads; any may write.
type wire struct {
	nc net.Conn
	br *bufio.Reader

	mu sync.Mutex // held while writing
}

// closeError says that the relay has closed the connection, and with what code.
type closeError struct {
	code   ws.StatusCode
	reason string
}

func (e *closeError) Error() string {
	return fmt.Sprintf("the relay closed the connection: %d %q", e.code, e.reason)
}

// closedWith reports whether err is the relay's close frame with this code.
func closedWith(err error, code ws.StatusCode) bool {
	var closed *closeError
	return errors.As(err, &closed) && closed.code == code
}

// dialTCP opens the transport.
func dialTCP(ctx context.Context, address string, w way) (net.Conn, error) {
	d := net.Dialer{Timeout: patience}
	if w.from != nil {
		d.LocalAddr = &net.TCPAddr{IP: w.from}
	}
	if w.via != "" {
		address = w.via
	}
	nc, err := d.DialContext(ctx, "tcp", address)
	if err == nil && w.small {
		err = nc.(*net.TCPConn).SetReadBuffer(32 << 10)
	}
	return nc, err
}

// dialWire opens a connection. A refusal by the relay is a ws.StatusError.
func dialWire(ctx context.Context, address string, config *tls.Config, w way) (*wire, error) {
	d := ws.Dialer{
		Timeout:        patience,
		ReadBufferSize: 1 << 10,
		NetDial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialTCP(ctx, address, w)
		},
		TLSConfig: config,
	}
	nc, br, _, err := d.Dial(ctx, "wss://"+address+skald.Path)
	if err != nil {
		return nil, fmt.Errorf("failed to dial: %w", err)
	}
	if br == nil { // nothing came behind the answer so far
		br = bufio.NewReaderSize(nc, 1<<10)
	}
	return &wire{nc: nc, br: br}, nil
}

// read returns the next frame.
func (w *wire) read() (ws.OpCode, []byte, error) {
	f, err := proofwire.ReadServer(w.br)
	if err != nil {
		return 0, nil, fmt.Errorf("failed to read: %w", err)
	}
	if f.Header.OpCode == ws.OpClose {
		closed := &closeError{code: ws.StatusNoStatusRcvd}
		if len(f.Payload) >= 2 {
			closed.code, closed.reason = ws.ParseCloseFrameData(f.Payload)
		}
		return 0, nil, closed
	}
	return f.Header.OpCode, f.Payload, nil
}

// write sends frames in one go.
func (w *wire) write(frames ...ws.Frame) error {
	var out []byte
	for _, f := range frames {
		b, err := ws.CompileFrame(ws.MaskFrame(f))
		if err != nil {
			return fmt.Errorf("failed to encode a frame: %w", err)
		}
		out = append(out, b...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.nc.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("failed to write: %w", err)
	}
	if _, err := w.nc.Write(out); err != nil {
		return fmt.Errorf("failed to write: %w", err)
	}
	return nil
}

// farewell says goodbye; the relay's answer comes to the reader.
func (w *wire) farewell() {
	_ = w.write(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusNormalClosure, "")))
}

// abort breaks the connection off with a reset, without a word.
func (w *wire) abort() {
	raw := rawConn(w.nc)
	if t, ok := raw.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = raw.Close()
}

// rawConn is the transport under TLS.
func rawConn(nc net.Conn) net.Conn {
	if t, ok := nc.(*tls.Conn); ok {
		return t.NetConn()
	}
	return nc
}
