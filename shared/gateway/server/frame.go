package server

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
)

// The wire format: headers, and what RFC 6455 allows in them.

// maxControl is the longest payload of a control frame.
const maxControl = ws.MaxControlFramePayloadSize

// protocolError is a violation of the protocol by the peer, and the code with which
// the server closes the connection for it.
type protocolError struct {
	code   gateway.CloseCode
	reason string
}

func (e *protocolError) Error() string { return e.reason }

func violation(reason string) *protocolError {
	return &protocolError{code: gateway.CloseProtocol, reason: reason}
}

var (
	errLength      = violation("frame length is out of range")
	errClosePaylod = violation("close payload is malformed")
	errCloseCode   = violation("close code is not allowed")
	errCloseReason = &protocolError{code: closeInvalidData, reason: "close reason is not UTF-8"}
	errText        = &protocolError{code: closeInvalidData, reason: "text message is not UTF-8"}
)

// closeInvalidData (RFC 6455: 1007) concerns framing only, so no handler sends it.
const closeInvalidData gateway.CloseCode = 1007

// parseHeader reads a frame header from the start of b. Where b is too short ok
// is false and n is the number of bytes needed to get further.
func parseHeader(b []byte) (h ws.Header, n int, ok bool) {
	if len(b) < ws.MinHeaderSize {
		return h, ws.MinHeaderSize, false
	}
	h.Fin = b[0]&0x80 != 0
	h.Rsv = b[0] & 0x70 >> 4
	h.OpCode = ws.OpCode(b[0] & 0x0f)
	h.Masked = b[1]&0x80 != 0
	h.Length = int64(b[1] & 0x7f)
	n = ws.MinHeaderSize
	switch h.Length {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	lengthEnd := n
	if h.Masked {
		n += len(h.Mask)
	}
	if len(b) < n {
		return h, n, false
	}
	switch h.Length {
	case 126:
		h.Length = int64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		// Over 2^63-1 becomes negative, which checkHeader refuses.
		h.Length = int64(binary.BigEndian.Uint64(b[2:]))
	}
	copy(h.Mask[:], b[lengthEnd:n])
	return h, n, true
}

// checkHeader checks a client's header against RFC 6455; no extension is ever
// negotiated. It accepts a length in more bytes than necessary.
func checkHeader(h ws.Header, fragmented bool) error {
	if h.Length < 0 {
		return errLength
	}
	state := ws.StateServerSide
	if fragmented {
		state = state.Set(ws.StateFragmented)
	}
	if err := ws.CheckHeader(h, state); err != nil {
		return violation(err.Error())
	}
	return nil
}

// parseClose reads the payload of the peer's close frame.
func parseClose(b []byte) (gateway.CloseCode, string, error) {
	switch len(b) {
	case 0:
		return gateway.CloseNoStatus, "", nil
	case 1:
		return 0, "", errClosePaylod
	}
	code := gateway.CloseCode(binary.BigEndian.Uint16(b))
	if !sendable(code) {
		return 0, "", errCloseCode
	}
	if !utf8.Valid(b[2:]) {
		return 0, "", errCloseReason
	}
	return code, string(b[2:]), nil
}

// sendable reports whether a close frame may carry a code: those of RFC 6455 and the
// IANA registry, and the ranges for libraries and applications.
func sendable(code gateway.CloseCode) bool {
	switch {
	case code >= 3000 && code <= 4999:
		return true
	case code == 1004, code == gateway.CloseNoStatus, code == gateway.CloseAbnormal:
		return false
	}
	return code >= 1000 && code <= 1014
}

// frameSize is the length of an unmasked frame with n payload bytes.
func frameSize(n int) int {
	return ws.HeaderSize(ws.Header{Length: int64(n)}) + n
}

// appendFrame appends a whole unmasked frame.
func appendFrame(b []byte, op ws.OpCode, payload []byte) []byte {
	b = append(b, 0x80|byte(op))
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n <= 0xffff:
		b = append(b, 126)
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b = append(b, 127)
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return append(b, payload...)
}

// closePayload is the payload of a close frame: empty for a code that must not
// be sent, the reason cut to what a control frame holds.
func closePayload(code gateway.CloseCode, reason string) []byte {
	if !sendable(code) {
		return nil
	}
	const room = maxControl - 2
	if len(reason) > room {
		reason = reason[:room]
	}
	// The cut may have split a character, and the reason may have been invalid before;
	// a peer would have to fail on invalid UTF-8.
	for !utf8.ValidString(reason) {
		reason = reason[:len(reason)-1]
	}
	return append(binary.BigEndian.AppendUint16(make([]byte, 0, maxControl), uint16(code)), reason...)
}
