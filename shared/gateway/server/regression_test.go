package server

import (
	"net"
	"testing"
	"testing/synctest"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/gatewaytest"
)

// A bound that was broken before the HTTP answer was written dropped the answer
// as well: the client got a close frame where it expected HTTP.
func TestSlowReaderBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, gatewaytest.NewRecorder(), func(o *Options) { o.MaxBuffered = 1000 })
		if s.gate.enter() != entered {
			t.Fatal("not let in")
		}
		c := newConn(s, "c")
		s.conns.add(c)
		c.accept(gateway.ConnectResult{}, switchingProtocols("dGhlIHNhbXBsZSBub25jZQ=="))
		var err error
		for range 20 {
			_, err = c.post(gateway.Message{Data: []byte(repeat(100))})
		}
		if err != gateway.ErrGone {
			t.Errorf("post: %v", err)
		}
		client, transport := net.Pipe()
		c.start(transport, nil)
		p := &rawPeer{Conn: client, t: t}
		p.readUpgrade()
		p.leave(gateway.CloseSlowReader)
		if err := s.Shutdown(t.Context(), 0); err != nil {
			t.Error(err)
		}
	})
}
