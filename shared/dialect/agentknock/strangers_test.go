package agentknock

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/gateway"
)

// settle does what is due in the background.
func (s *stage) settle() {
	for s.work() {
		continue
	}
}

// last is the last frame on a connection.
func (s *stage) last(c gateway.Conn) string {
	inbox := s.conns[c].inbox
	if len(inbox) == 0 {
		return ""
	}
	return inbox[len(inbox)-1]
}

// count is how many messages of a kind came on a connection.
func (s *stage) count(c gateway.Conn, kind string) (n int) {
	for _, text := range s.conns[c].inbox {
		if strings.Contains(text, `"type":"message"`) && strings.Contains(text, `"kind":"`+kind+`"`) {
			n++
		}
	}
	return n
}

// stranger begins a pairing with a payload of a size and returns the answer.
func (c *cast) stranger(n, size int) string {
	id := stageID(n, c.now)
	conn := c.dial("/v1/address/"+stageAddress+"/request/"+id, peer.NewToken())
	f := peer.Frame{Type: peer.Message, ClientID: id, RequestID: id, Kind: peer.Request}
	f.Payload = []byte(`"` + strings.Repeat("z", size) + `"`)
	c.frame(conn, string(f.Encode()))
	return c.last(conn)
}

// A client that knows the address begins pairings until no more are accepted. Enrolled
// clients are not affected.
func TestStrangersLeaveRoom(t *testing.T) {
	for _, k := range []struct {
		name   string
		size   int
		limits func(*Limits)
		taken  int
		code   string
	}{
		{"open exchanges", 1, func(l *Limits) { l.DeviceOpenExchanges, l.DeviceExchangesPerMinute = 40, 0 }, 10, codeCapacityExceeded},
		{"few open exchanges", 1, func(l *Limits) { l.DeviceOpenExchanges, l.DeviceExchangesPerMinute = 12, 0 }, 8, codeCapacityExceeded},
		{"stored bytes", 100 << 10, func(l *Limits) { l.DeviceStoredBytes = 2 << 20 }, 5, codeCapacityExceeded},
		{"rate", 1, func(l *Limits) { l.DeviceExchangesPerMinute = 40 }, 10, codeRateLimited},
	} {
		t.Run(k.name, func(t *testing.T) {
			x := &stageDeal{}
			c := newCast(t, true, x)
			lim := DefaultLimits()
			k.limits(&lim)
			c.knock.SetLimits(lim)
			taken := 0
			for ; taken < 60; taken++ {
				answer := c.stranger(taken+1, k.size)
				if strings.Contains(answer, `"ack"`) {
					continue
				}
				if !strings.Contains(answer, k.code) {
					t.Errorf("a stranger is told %s", answer)
				}
				break
			}
			if taken != k.taken {
				t.Errorf("%d pairings are taken, want %d", taken, k.taken)
			}
			x.id = stageID(100, c.now)
			client := c.dial(c.client.path, c.client.token)
			c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
			if got := c.last(client); !strings.Contains(got, `"ack"`) {
				t.Errorf("a client that is enrolled is told %s", got)
			}
			// What has expired gives the room back.
			c.now = c.now.Add(lim.ExchangeTTL + time.Second)
			if got := c.stranger(150, k.size); !strings.Contains(got, `"ack"`) {
				t.Errorf("a day later a stranger is told %s", got)
			}
		})
	}
}

// The device can answer a pairing even when strangers have used up the share of pairings.
func TestStrangersDoNotSilenceTheDevice(t *testing.T) {
	c := newCast(t, true, &stageDeal{})
	lim := DefaultLimits()
	lim.DeviceStoredBytes = 1 << 20
	c.knock.SetLimits(lim)
	device := c.dial(c.device.path, c.device.token)
	c.settle()
	for n := 1; strings.Contains(c.stranger(n, 100<<10), `"ack"`); n++ {
		continue
	}
	id := stageID(1, stageStart)
	f := peer.Frame{Type: peer.Message, ClientID: id, RequestID: id, Kind: peer.Response, Payload: []byte(`"` + strings.Repeat("y", 200<<10) + `"`)}
	c.frame(device, string(f.Encode()))
	if got := c.last(device); !strings.Contains(got, `"ack"`) {
		t.Errorf("the device is told %s", got)
	}
}

// Two connections of one client resume and send again by turns. The device is sent what
// it has not acked once more, and not each time.
func TestDeviceIsNotFlooded(t *testing.T) {
	for _, functions := range []bool{false, true} {
		for _, pairing := range []bool{false, true} {
			x := &stageDeal{pairing: pairing}
			c := newCast(t, functions, x)
			device := c.dial(c.device.path, c.device.token)
			c.settle()
			two := [2]gateway.Conn{c.dial(c.client.path, c.client.token), c.dial(c.client.path, c.client.token)}
			flood := func(f ...peer.Frame) {
				for range 10 {
					for _, conn := range two {
						for _, f := range f {
							c.frame(conn, string(f.Encode()))
						}
					}
				}
			}
			flood(x.frame(peer.Message, peer.Request), x.frame(peer.Resume, ""))
			if n := c.count(device, peer.Request); n != 2 {
				t.Errorf("functions=%t pairing=%t: the device is sent its request %d times", functions, pairing, n)
			}
			c.frame(device, string(x.frame(peer.Ack, peer.Request).Encode()))
			flood(x.frame(peer.Message, peer.Completion))
			if n := c.count(device, peer.Completion); n != 2 {
				t.Errorf("functions=%t pairing=%t: the device is sent its completion %d times", functions, pairing, n)
			}
		}
	}
}

// What the address makes larger than a frame is refused, on whatever connection it
// comes, and said so; the device is never sent a frame that it cannot take.
func TestTooLargeWithTheAddress(t *testing.T) {
	for _, k := range []string{peer.Request, peer.Completion} {
		for _, enrolled := range []bool{false, true} {
			if enrolled && k == peer.Request {
				continue
			}
			x := &stageDeal{pairing: true}
			c := newCast(t, true, x)
			device := c.dial(c.device.path, c.device.token)
			c.settle()
			client := c.dial(c.client.path, c.client.token)
			if k == peer.Completion {
				c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
				c.frame(device, string(x.frame(peer.Ack, peer.Request).Encode()))
			}
			if enrolled {
				c.frame(device, string(peer.Frame{Type: peer.SetClientState, ClientID: x.client, State: "active"}.Encode()))
				client = c.dial("/v1/device/"+stageDevice+"/client/"+x.client, c.client.token)
			}
			f := x.frame(peer.Message, k)
			f.Payload = []byte(`""`)
			f.Payload = []byte(`"` + strings.Repeat("z", MaxFrame-len(f.Encode())) + `"`)
			c.frame(client, string(f.Encode()))
			got := c.last(client)
			for _, part := range []string{`"error":"INVALID_FRAME"`, `"retryable":false`, `"kind":"` + k + `"`, x.id} {
				if !strings.Contains(got, part) {
					t.Errorf("%s enrolled=%t: the client is told %.300s, without %s", k, enrolled, got, part)
				}
			}
			if c.conns[client].code != gateway.CloseTooLarge {
				t.Errorf("%s enrolled=%t: closed with %d", k, enrolled, c.conns[client].code)
			}
			if n := c.count(device, k); n != 0 {
				t.Errorf("%s enrolled=%t: the device is sent %d", k, enrolled, n)
			}
		}
	}
}

// Guesses are counted, of addresses and of tokens, and only guesses.
func TestGuessesAreLimited(t *testing.T) {
	c := newCast(t, true, &stageDeal{})
	ask := func(verb, token, body string) (int, float64) {
		t.Helper()
		status, got, header := c.ask("POST", stageDevice+"/"+verb, token, jsonType, body)
		wait, _ := got["retry_after_ms"].(float64)
		if status == http.StatusTooManyRequests && header.Get("Retry-After") == "" {
			t.Error("there is no Retry-After")
		}
		return status, wait
	}
	address := func(n int) string { return fmt.Sprintf(`{"address_id":"%032x"}`, n) }
	for n := range 10 {
		if status, _ := ask("address", c.device.token, address(n)); status != 200 {
			t.Fatalf("address %d: %d", n, status)
		}
	}
	c.now = c.now.Add(20 * time.Second)
	if status, wait := ask("address", c.device.token, address(10)); status != 429 || wait != 40000 {
		t.Errorf("one address more: %d, to wait %v", status, wait)
	}
	if status, _ := ask("address", c.device.token, address(9)); status != 200 {
		t.Errorf("its own address: %d", status)
	}
	for n := range 30 {
		if status, _ := ask("push", peer.NewToken(), `{"fid":"f"}`); status != 401 {
			t.Fatalf("wrong token %d: %d", n, status)
		}
	}
	if status, wait := ask("push", peer.NewToken(), `{"fid":"f"}`); status != 429 || wait != 60000 {
		t.Errorf("one wrong token more: %d, to wait %v", status, wait)
	}
	if status, _ := ask("push", c.device.token, `{"fid":"f"}`); status != 200 {
		t.Errorf("the device itself: %d", status)
	}
	c.now = c.now.Add(time.Minute)
	if status, _ := ask("address", c.device.token, address(11)); status != 200 {
		t.Errorf("a minute later: %d", status)
	}
}

// A slash that is escaped is no slash.
func TestEscapedSlash(t *testing.T) {
	c := newCast(t, false, &stageDeal{})
	for _, path := range []string{"%2Fsubscription/status", "%2fsubscription/status", "/subscription%2Fstatus"} {
		r := httptest.NewRequest("POST", "/v1/device/"+stageDevice+path, strings.NewReader(`{}`))
		r.Header.Set("Authorization", "Bearer "+c.device.token)
		r.Header.Set("Content-Type", jsonType)
		w := httptest.NewRecorder()
		c.knock.ServeHTTP(w, r)
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
