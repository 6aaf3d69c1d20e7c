package stories

import (
	"errors"
	"strings"
	"testing"
	"time"

	knockpeer "blindpost/shared/client/agentknock"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/proof/bubble"
	"blindpost/shared/standalone"
)

var knockLimits = agentknock.DefaultLimits()

// An exchange that nothing happens to expires: what waits is discarded, its state can
// be asked for a while, and then it is gone.
func TestAgentknockRequestExpires(t *testing.T) {
	inDoorbellBubble(t, func(t *testing.T, k *doorbell) {
		c := k.call()
		x, y := k.ask(), k.ask()
		c.says(x.message(knockpeer.Request), y.message(knockpeer.Request), y.message(knockpeer.Completion))
		c.gets(x.ack(knockpeer.Request), y.ack(knockpeer.Request), y.ack(knockpeer.Completion))
		k.Sleep(knockLimits.ExchangeTTL - time.Minute)
		k.dial(x.message(knockpeer.Request), y.message(knockpeer.Request), y.message(knockpeer.Completion)).conn.Drop()
		k.Sleep(2 * time.Minute)
		dv := k.dial() // nothing waits any more
		c = k.call()
		c.getsState(x, snapshot("expired", "discarded", "absent", "absent"))
		c.getsState(y, snapshot("expired", "discarded", "absent", "discarded"))
		dv.getsState(x, snapshot("expired", "discarded", "absent", "absent"))
		// What comes too late changes nothing.
		dv.says(x.ack(knockpeer.Request))
		c.getsState(x, snapshot("expired", "discarded", "absent", "absent"))
		k.Sleep(knockLimits.RecoveryTTL + time.Minute)
		c = k.call()
		c.getsState(x, knockpeer.Snapshot{})
		k.dial().getsState(x, knockpeer.Snapshot{})
	})
}

// A response that nobody fetches expires with its exchange.
func TestAgentknockResponseExpires(t *testing.T) {
	inDoorbellBubble(t, func(t *testing.T, k *doorbell) {
		c, dv := k.call(), k.dial()
		x := k.ask()
		c.says(x.message(knockpeer.Request))
		c.gets(x.ack(knockpeer.Request))
		c.conn.Close()
		dv.gets(x.message(knockpeer.Request))
		dv.says(x.ack(knockpeer.Request), x.message(knockpeer.Response))
		dv.gets(x.ack(knockpeer.Response))
		k.Sleep(knockLimits.ExchangeTTL - time.Minute)
		c = k.call()
		c.getsState(x, snapshot("open", "delivered", "accepted", "absent"))
		c.gets(x.message(knockpeer.Response)) // and does not say that it has it
		k.Sleep(knockLimits.ExchangeTTL + time.Minute)
		c = k.call()
		c.getsState(x, snapshot("expired", "delivered", "discarded", "absent"))
		// A completion is acknowledged all the same.
		c.says(x.message(knockpeer.Completion))
		c.gets(x.ack(knockpeer.Completion))
	})
}

// Whatever happens to an exchange gives it its time again.
func TestAgentknockActivityProlongs(t *testing.T) {
	inDoorbellBubble(t, func(t *testing.T, k *doorbell) {
		x, c := k.ask(), k.call()
		c.says(x.message(knockpeer.Request))
		c.gets(x.ack(knockpeer.Request))
		pause := knockLimits.ExchangeTTL / 10 * 9
		k.Sleep(pause)
		dv := k.dial(x.message(knockpeer.Request))
		dv.says(x.ack(knockpeer.Request))
		k.Sleep(pause)
		dv = k.dial()
		dv.says(x.message(knockpeer.Response))
		dv.gets(x.ack(knockpeer.Response))
		k.Sleep(pause)
		c = k.call()
		c.getsState(x, snapshot("open", "delivered", "accepted", "absent"))
		c.gets(x.message(knockpeer.Response))
		c.says(x.ack(knockpeer.Response))
		k.Sleep(pause)
		c = k.call()
		c.getsState(x, snapshot("open", "delivered", "delivered", "absent"))
		c.says(x.message(knockpeer.Completion))
		c.gets(x.ack(knockpeer.Completion))
		k.Sleep(pause)
		dv = k.dial(x.message(knockpeer.Completion))
		dv.says(x.ack(knockpeer.Completion))
		k.Settle()
		k.call().getsState(x, snapshot("settled", "delivered", "delivered", "delivered"))
	})
}

// When the state is gone, the id is too old to be used for anything else.
func TestAgentknockUsedIDStaysUsed(t *testing.T) {
	inDoorbellBubble(t, func(t *testing.T, k *doorbell) {
		began := time.Now()
		x, never := k.ask(), k.ask()
		c, dv := k.call(), k.dial()
		c.says(x.message(knockpeer.Request))
		c.gets(x.ack(knockpeer.Request))
		dv.gets(x.message(knockpeer.Request))
		dv.says(x.ack(knockpeer.Request))
		c.gets(x.receipt(knockpeer.Request))
		c.says(x.message(knockpeer.Completion))
		c.gets(x.ack(knockpeer.Completion))
		dv.gets(x.message(knockpeer.Completion))
		dv.says(x.ack(knockpeer.Completion))
		c.gets(x.receipt(knockpeer.Completion))
		c.says(never.message(knockpeer.Completion)) // before its request
		c.gets(never.ack(knockpeer.Completion))
		for ; time.Since(began) < 3*knockLimits.RecoveryTTL; k.Sleep(97 * time.Minute) {
			for _, y := range []*asked{x, never} {
				c = k.call()
				c.says(y.message(knockpeer.Request))
				switch f := c.next(); {
				case y == x && f.Type == knockpeer.Ack && f.Kind == knockpeer.Request: // a duplicate
				case f.Type == knockpeer.Inactive:
				case f.Type == knockpeer.Error && f.Code == "INVALID_REQUEST_ID" && !f.Retryable:
				default:
					t.Fatalf("after %v the request is answered with %s", time.Since(began), f)
				}
				c.conn.Close()
			}
			k.dial().conn.Close() // nothing waits for the device
		}
	})
}

// A pairing attempt that is not gone on with is forgotten; who became a client is
// not.
func TestAgentknockPairingAttemptExpires(t *testing.T) {
	inDoorbellBubble(t, func(t *testing.T, k *doorbell) {
		c := k.newClient()
		k.open(c.DialPairing(t.Context(), knockpeer.Options{})).conn.Close()
		k.Sleep(knockLimits.PairingTTL - time.Minute)
		k.open(c.DialPairing(t.Context(), knockpeer.Options{})).conn.Close()
		other := *c
		other.Token = knockpeer.NewToken()
		_, err := other.DialPairing(t.Context(), knockpeer.Options{})
		var no *knockpeer.Refusal
		if !errors.As(err, &no) || no.Status != 409 && no.Status != 401 {
			t.Errorf("an attempt with another token: %v", err)
		}
		k.Sleep(2 * bubble.Day)
		// It is gone, and its id too old to begin again.
		if _, err := c.DialPairing(t.Context(), knockpeer.Options{}); !errors.As(err, &no) || no.Status/100 != 4 {
			t.Errorf("an attempt of two days ago: %v", err)
		}
		k.call()
	})
}

// Devices and clients stay, however long nobody hears of them.
func TestAgentknockPairingsStay(t *testing.T) {
	inDoorbellBubble(t, func(t *testing.T, k *doorbell) {
		for range 2 {
			k.Sleep(40 * bubble.Day)
			c, dv := k.call(), k.dial()
			x := k.ask()
			c.says(x.message(knockpeer.Request))
			c.gets(x.ack(knockpeer.Request))
			dv.gets(x.message(knockpeer.Request))
			dv.says(x.ack(knockpeer.Request))
			c.gets(x.receipt(knockpeer.Request))
			c.conn.Close()
			dv.conn.Close()
		}
	})
}

// What is over leaves nothing in the file.
func TestAgentknockLeavesNothing(t *testing.T) {
	inDoorbellBubble(t, func(t *testing.T, k *doorbell) {
		c := k.call()
		var ids []string
		for i := range 10 {
			x := k.ask()
			c.says(x.message(knockpeer.Request))
			c.gets(x.ack(knockpeer.Request))
			if i%2 == 0 {
				c.says(x.message(knockpeer.Completion))
				c.gets(x.ack(knockpeer.Completion))
			}
			ids = append(ids, x.id)
		}
		c.conn.Close()
		kept := 0
		k.Sleep(2*(knockLimits.ExchangeTTL+knockLimits.RecoveryTTL) + 3*bubble.Day)
		k.Shutdown(0)
		for _, key := range k.Stored() {
			if strings.Contains(key, k.client.ID) {
				kept++
			}
			for _, id := range ids {
				if strings.Contains(key, id) {
					t.Errorf("the file still holds %s", key)
				}
			}
		}
		if kept == 0 {
			t.Error("the file does not even hold the client: the search is blind")
		}
	})
}

// Who waits as long as it was told gets through, with the same id.
func TestAgentknockRetryAfter(t *testing.T) {
	inDoorbellBubble(t, func(t *testing.T, k *doorbell) {
		c := k.call()
		for range 30 {
			x := k.ask()
			c.says(x.message(knockpeer.Request))
			f := c.next()
			if f.Type == knockpeer.Ack {
				continue
			}
			if f.Type != knockpeer.Error || f.Code != "RATE_LIMITED" || !f.Retryable || f.RetryAfter <= 0 || f.RetryAfter > time.Minute {
				t.Fatalf("got %s", f)
			}
			c.conn.Close()
			k.Sleep(f.RetryAfter)
			c = k.call()
			c.says(x.message(knockpeer.Request))
			c.gets(x.ack(knockpeer.Request))
			return
		}
		t.Error("nothing was refused")
	}, func(c *standalone.Config) { c.Limits.Agentknock.ClientExchangesPerMinute = 5 })
}

// Connections that answer pings stay, for hours.
func TestAgentknockIdleConnectionsStay(t *testing.T) {
	inDoorbellBubble(t, func(t *testing.T, k *doorbell) {
		c, dv := k.call(), k.dial()
		k.Sleep(5 * time.Hour)
		x := k.ask()
		c.says(x.message(knockpeer.Request))
		c.gets(x.ack(knockpeer.Request))
		dv.gets(x.message(knockpeer.Request))
		if c.conn.Pings() < 100 || dv.conn.Pings() < 100 {
			t.Errorf("%d and %d pings in five hours", c.conn.Pings(), dv.conn.Pings())
		}
	})
}
