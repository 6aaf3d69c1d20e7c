package conformance

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"
)

var section2 = []story{
	{Name: "Section2_PlainWebSocketIsRefused", Tell: section2Plain},
	{Name: "Section2_OneEndpoint", Tell: section2OnePath},
	{Name: "Section2_QueryMeansNothing", Tell: section2Query},
}

// The relay MUST reject plain WS.
func section2Plain(t *testing.T, r *relay) {
	conn, err := net.Dial("tcp", r.address())
	if err != nil {
		return // nobody listens for plain connections: that is a refusal too
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET /v1/ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", r.address())
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return // hung up
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode/100 == 2 {
		t.Fatalf("plain WebSocket is answered with %s", resp.Status)
	}
}

// /v1/ws is the single endpoint.
func section2OnePath(t *testing.T, r *relay) {
	u, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/v1", "/v1/ws/more", "/v2/ws"} {
		target := r.Target
		target.URL = u.ResolveReference(&url.URL{Path: path}).String()
		target.Log = nil // is searched once
		if _, _, err := newRelay(t, target).call(t, "stranger", line{}); err == nil {
			t.Errorf("%s is an endpoint as well", path)
		}
	}
}

// namespace_id is not in the query string: what stands there changes nothing.
func section2Query(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent(line{query: "namespace_id=" + fmt.Sprintf("%x", randomBytes(32)) + "&role=client"})
	agent.wantPresence(h.agent)
}
