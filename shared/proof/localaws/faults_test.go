//go:build aws

package localaws_test

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/proof/localaws"
)

// dice decides what goes wrong, and counts.
type dice struct{ thrown, hit atomic.Int64 }

// oneIn is true once in n times.
func (d *dice) oneIn(n int) bool {
	d.thrown.Add(1)
	if rand.IntN(n) != 0 {
		return false
	}
	d.hit.Add(1)
	return true
}

// Every fault is one that AWS makes: what was accepted arrives all the same, in order,
// and nothing is put aside.
func TestFaults(t *testing.T) {
	t.Parallel()
	quick := localaws.Options{
		Env: roomy, Repeat: 0.3, IngressVisibility: 4 * time.Second, JobsVisibility: 4 * time.Second, IngressAttempts: 20, JobsAttempts: 20,
	}
	for name, disturb := range map[string]func(*front, *dice){
		"a throttled table": func(f *front, d *dice) {
			f.FailTable(func(string, []byte) localaws.TableFault {
				if d.oneIn(5) {
					return localaws.TableThrottled
				}
				return localaws.TableSound
			})
		},
		"a table whose answers get lost": func(f *front, d *dice) {
			f.FailTable(func(string, []byte) localaws.TableFault {
				if d.oneIn(10) {
					return localaws.TableSilent
				}
				return localaws.TableSound
			})
		},
		"functions killed in the middle": func(f *front, d *dice) {
			f.Lambda.Fail(func(name string, _ []byte) localaws.Fault {
				if (name == "Message" || name == "Sweeper") && d.oneIn(4) {
					return localaws.Fault{Kill: time.Duration(rand.IntN(40)) * time.Millisecond}
				}
				return localaws.Sound
			})
		},
		"functions that are throttled": func(f *front, d *dice) {
			f.Lambda.Fail(func(string, []byte) localaws.Fault { return localaws.Fault{Throttle: d.oneIn(4), Kill: -1} })
		},
		"queues that do not answer": func(f *front, d *dice) {
			f.FailQueues(func(string) bool { return d.oneIn(4) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, plan{ingress: true, house: quick})
			h, agent := f.household()
			const letters = 60
			d := &dice{}
			disturb(f, d)
			phone := h.dialPhonePatiently()
			for n := range letters / 2 {
				agent.send(h.letter(n))
			}
			phone = h.readPatiently(phone, 0, letters/2-1)
			phone.Close()
			for n := letters / 2; n < letters; n++ {
				agent.send(h.letter(n))
			}
			h.readPatiently(h.dialPhonePatiently(), letters/2, letters-1)
			f.calm()
			if d.hit.Load() == 0 {
				t.Errorf("nothing went wrong in %d cases", d.thrown.Load())
			}
			t.Logf("%d of %d went wrong", d.hit.Load(), d.thrown.Load())
			wantNothingDead(t, f)
		})
	}
}

// readPatiently reads the letters from first to last. A connection that is closed
// meanwhile is opened again. What a function has posted before it died, and could not
// note any more, comes again; but no letter comes before all that were sent before it.
func (h *household) readPatiently(m *member, first, last int) *member {
	h.t.Helper()
	high := first - 1 // has come, on whatever connection
	for end := time.Now().Add(patience); high < last; {
		f, err := m.receive()
		if err != nil {
			if time.Now().After(end) {
				h.t.Fatalf("letters after %d do not come: %v", high, err)
			}
			m = h.dialPhonePatiently()
			continue
		}
		n, ok := number(f)
		if !ok || n < first {
			continue // of before
		}
		if n > high+1 {
			h.t.Fatalf("got letter %d, up to %d have come before", n, high)
		}
		high = max(high, n)
	}
	return m
}

// calm ends all faults.
func (f *front) calm() {
	f.FailTable(nil)
	f.FailQueues(nil)
	f.Lambda.Fail(nil)
}

// dialPhonePatiently dials until it is let in: while AWS fails, connections may.
func (h *household) dialPhonePatiently() *member {
	h.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		m, err := h.f.dial(h.phoneAuth())
		if err == nil {
			return m
		}
		if time.Now().After(end) {
			h.t.Fatalf("the phone is not let in: %v", err)
		}
	}
}

// A frame that can never be handled is tried as often as the queue says, then put
// aside; its peer is told by the end of the connection, and nobody else notices.
func TestPoison(t *testing.T) {
	t.Parallel() // it mostly waits
	f := open(t, plan{ingress: true, house: localaws.Options{
		Env: roomy, IngressVisibility: 40 * time.Second, JobsVisibility: 40 * time.Second, IngressAttempts: 2,
	}})
	h, agent := f.household()
	other, otherAgent := f.household()
	phone, otherPhone := h.dialPhone(), other.dialPhone()
	agent.send(h.letter(0))
	phone.wantLetters(0, 0, false)

	poison := h.letter(1)
	poison.GetMessage().Nonce = []byte("poison 12345")
	var tries atomic.Int64
	f.FailTable(func(_ string, request []byte) localaws.TableFault {
		if containsFrame(request, poison.GetMessage().GetNonce()) {
			tries.Add(1)
			return localaws.TableThrottled
		}
		return localaws.TableSound
	})
	agent.send(poison)
	for n := range 20 {
		otherAgent.send(other.letter(n))
	}
	otherPhone.wantLetters(0, 19, false)
	agent.wantClosed()
	if tries.Load() == 0 {
		t.Fatal("the poison was never seen")
	}
	dead := f.Queues.Dead(f.Ingress)
	for end := time.Now().Add(patience); len(dead) == 0 && time.Now().Before(end); dead = f.Queues.Dead(f.Ingress) {
		time.Sleep(100 * time.Millisecond) // until the queue has looked
	}
	if len(dead) != 1 || dead[0].Group == "" {
		t.Fatalf("%d messages were put aside", len(dead))
	}
	r, ok, err := record.Parse(dead[0].Body)
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	if text, err := r.Text(); err != nil || !strings.Contains(text, "poison 12345") {
		t.Error("another frame was put aside")
	}
	again := h.dialAgent()
	again.send(h.letter(2))
	phone.wantLetters(2, 2, false)
}

// containsFrame reports whether a request to the table carries some bytes, in base64
// with whatever comes before them.
func containsFrame(request, want []byte) bool {
	for _, field := range bytes.Split(request, []byte{'"'}) {
		if raw, err := base64.StdEncoding.AppendDecode(nil, field); err == nil && bytes.Contains(raw, want) {
			return true
		}
	}
	return false
}
