// Package wire reads WebSocket frames as they come, for peers of a test that see what
// a library would hide.
package wire

import (
	"fmt"
	"io"

	"github.com/gobwas/ws"
)

// most is the largest frame that is taken, in bytes.
const most = 2 << 20

// Read returns the next frame, unmasked; its header still has the mask.
func Read(r io.Reader) (ws.Frame, error) {
	h, err := ws.ReadHeader(r)
	if err != nil {
		return ws.Frame{}, err
	}
	if h.Length > most {
		return ws.Frame{}, fmt.Errorf("a frame of %d bytes", h.Length)
	}
	f := ws.Frame{Header: h, Payload: make([]byte, h.Length)}
	if _, err := io.ReadFull(r, f.Payload); err != nil {
		return ws.Frame{}, err
	}
	if h.Masked {
		ws.Cipher(f.Payload, h.Mask, 0)
	}
	return f, nil
}

// ReadServer returns the next frame of a server that sends whole, plain frames.
func ReadServer(r io.Reader) (ws.Frame, error) {
	f, err := Read(r)
	if h := f.Header; err == nil && (h.Masked || !h.Fin || h.Rsv != 0) {
		return ws.Frame{}, fmt.Errorf("the server sent a fragment, an extension or a masked frame: %+v", h)
	}
	return f, err
}
