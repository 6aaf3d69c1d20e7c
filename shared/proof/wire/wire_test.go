package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gobwas/ws"
)

func TestRead(t *testing.T) {
	whole := ws.MustCompileFrame(ws.NewTextFrame([]byte("hello")))
	masked := ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte("hello"))))
	for name, c := range map[string]struct {
		b            []byte
		read, server bool // whether each takes it
	}{
		"whole":    {whole, true, true},
		"masked":   {masked, true, false},
		"fragment": {append([]byte{byte(ws.OpText)}, whole[1:]...), true, false},
		"cut off":  {whole[:len(whole)-1], false, false},
		"too long": {binary.BigEndian.AppendUint64([]byte{0x82, 127}, most+1), false, false},
	} {
		f, err := Read(bytes.NewReader(c.b))
		if took := err == nil && string(f.Payload) == "hello"; took != c.read {
			t.Errorf("%s: read %q, %v", name, f.Payload, err)
		}
		f, err = ReadServer(bytes.NewReader(c.b))
		if took := err == nil && string(f.Payload) == "hello"; took != c.server {
			t.Errorf("%s: read of a server %q, %v", name, f.Payload, err)
		}
	}
}
