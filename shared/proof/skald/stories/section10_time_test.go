package stories

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/proof/rig"
	"blindpost/shared/standalone"
)

// 60 messages a minute and connection: the minute begins with the first.
func TestSection10_MessagesPerMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		phone := h.phones[0].connect()
		agent.wantOnline(h.phones[0])
		w.Sleep(time.Hour + 333*time.Millisecond)
		send := func(n int) {
			t.Helper()
			ms := w.parcels(n, 10)
			for i, m := range ms {
				m.live = i%3 == 0
				ms[i] = m
				agent.post(h.phones[0], m)
			}
			phone.wantMessages(h.agent, ms...)
		}
		refuse := func() {
			t.Helper()
			for _, live := range []bool{false, true} {
				m := w.parcel(10)
				m.live = live
				agent.post(h.phones[0], m)
				agent.wantError("rate_limited")
			}
			agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}})
			agent.wantError("rate_limited")
			phone.wantNothing()
		}
		send(40)
		w.Sleep(30 * time.Second)
		send(19)
		agent.askPresence() // counts
		refuse()
		w.Sleep(29999 * time.Millisecond)
		refuse()
		w.Sleep(time.Millisecond)
		send(60)
		refuse()

		// The budget of one connection is no other's, and a new one has a new one.
		phone.askPresence()
		agent = h.agent.connect()
		send(60)
		refuse()

		// What was refused is not counted against the next minute.
		w.Sleep(time.Minute)
		send(60)
		agent.wantNothing()
	})
}

// Frames that are no messages have a budget of their own.
func TestSection10_ControlFramesPerMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		w.Sleep(time.Minute)
		for range 60 {
			h.authorize(agent)
		}
		for range 10 {
			agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Authorize{Authorize: &skaldpb.Authorize{}}})
			agent.wantError("rate_limited")
		}
		agent.askPresence()
		w.Sleep(time.Minute)
		h.authorize(agent)
		h.phones[0].connect() // it was not revoked
		agent.wantOnline(h.phones[0])
	})
}

// 30 connections a minute and address, of the client and not of the proxy: an
// IPv4 address however it is written, the /64 of an IPv6 address.
func TestSection10_ConnectionsPerAddress(t *testing.T) {
	for _, c := range []struct {
		name  string
		same  []string // take turns
		other string
	}{
		{"v4", []string{"192.0.2.7"}, "192.0.2.8"},
		{"v4 in all its forms", []string{"192.0.2.7", "::ffff:192.0.2.7", "192.0.2.7:4711", "[::ffff:192.0.2.7]:4711"}, "::ffff:192.0.2.8"},
		{"v6", []string{"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", "[2001:db8:1:2::3]:4711"}, "2001:db8:1:3::1"},
		{"behind two proxies", []string{"192.0.2.7, 127.0.0.2", "192.0.2.7,127.0.0.3"}, "192.0.2.8, 127.0.0.2"},
		{"who claims to be others", []string{"198.51.100.1, 192.0.2.7", "198.51.100.2, 192.0.2.7", "192.0.2.7"}, "198.51.100.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h := w.home()
				for i := range 30 {
					if i == 20 {
						w.Sleep(50 * time.Second)
					}
					h.agent.dial(line{from: c.same[i%len(c.same)]}).close()
				}
				for i := range 2 * len(c.same) {
					res := w.refused(http.StatusTooManyRequests, line{from: c.same[i%len(c.same)]})
					checkRefusal(t, res)
				}
				h.agent.dial(line{from: c.other})
				w.Sleep(9999 * time.Millisecond)
				w.refused(http.StatusTooManyRequests, line{from: c.same[0]})
				w.Sleep(time.Millisecond)
				for i := range 30 { // the whole budget, though some have been refused
					h.agent.dial(line{from: c.same[i%len(c.same)]}).close()
				}
				w.refused(http.StatusTooManyRequests, line{from: c.same[0]})
			})
		})
	}
}

func checkRefusal(t *testing.T, res *http.Response) {
	t.Helper()
	var body struct{ Error, Message string }
	if b, err := io.ReadAll(res.Body); err != nil {
		t.Error(err)
	} else if err := json.Unmarshal(b, &body); err != nil || body.Error != "rate_limited" || body.Message == "" {
		t.Errorf("the refusal says %s", b)
	}
	if res.Header.Get("Retry-After") == "" {
		t.Error("the refusal does not say when to come again")
	}
}

// Who comes without a trusted proxy can claim nothing.
func TestSection10_ConnectionsPerAddressOverTLS(t *testing.T) {
	cert := rig.NewCertificate(t)
	server := &tls.Config{Certificates: []tls.Certificate{cert.Pair}}
	client := &tls.Config{RootCAs: cert.Roots, ServerName: "relay"}
	inBubble(t, func(t *testing.T, w *world) {
		dial := func(from, claim string, want int) {
			t.Helper()
			raw, ok := w.Pipes.Dial(from)
			if !ok {
				t.Fatal("nobody listens")
			}
			nc := tls.Client(raw, client)
			defer raw.Close()
			_, err := fmt.Fprintf(nc, "GET /v1/ws HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-Forwarded-For: %s\r\n\r\n", claim)
			if err != nil {
				t.Fatal(err)
			}
			line := make([]byte, len("HTTP/1.1 101"))
			if _, err := io.ReadFull(nc, line); err != nil || string(line[9:]) != fmt.Sprint(want) {
				t.Fatalf("upgrade was answered with %q, %v, want %d", line, err, want)
			}
		}
		for i := range 30 {
			dial("203.0.113.5", fmt.Sprint("192.0.2.", i), http.StatusSwitchingProtocols)
		}
		dial("203.0.113.5", "192.0.2.77", http.StatusTooManyRequests)
		dial("203.0.113.6", "203.0.113.5", http.StatusSwitchingProtocols)
		dial("2001:db8::1", "203.0.113.5", http.StatusSwitchingProtocols)
		w.Sleep(time.Minute)
		dial("203.0.113.5", "192.0.2.77", http.StatusSwitchingProtocols)
	}, func(c *standalone.Config) { c.TLS = server })
}
