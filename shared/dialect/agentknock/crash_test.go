package agentknock

import (
	"fmt"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// The stories that are told with a crash at each of their steps.
var crashStories = map[string]func(t testing.TB, functions bool) *cast{
	"straight":    func(t testing.TB, f bool) *cast { return newCast(t, f, &stageDeal{}) },
	"two at once": func(t testing.TB, f bool) *cast { return newCast(t, f, &stageDeal{}, &stageDeal{}) },
	"the device comes late": func(t testing.TB, f bool) *cast {
		c := newCast(t, f, &stageDeal{}, &stageDeal{})
		c.device.away = func() bool { return !c.deals[0].acked || !c.deals[1].acked }
		return c
	},
	"the client leaves and comes back for the response": func(t testing.TB, f bool) *cast {
		c := newCast(t, f, &stageDeal{leave: true})
		c.client.away = func() bool { x := c.deals[0]; return x.acked && !x.answered }
		return c
	},
	"the client leaves before it hears anything": func(t testing.TB, f bool) *cast {
		c := newCast(t, f, &stageDeal{})
		left := false
		c.client.sent = func(f peer.Frame) {
			if f.Kind == peer.Request && !left {
				left = true
				c.hangUp(c.client.conn)
			}
		}
		// If its request was accepted it comes back when there is a response.
		c.client.away = func() bool { return left && !c.deals[0].answered && c.remembers(c.deals[0]) }
		return c
	},
	"aborted before the device comes": func(t testing.TB, f bool) *cast {
		c := newCast(t, f, &stageDeal{abort: true})
		c.device.away = func() bool { return !c.deals[0].completed }
		return c
	},
	"aborted while the device is there": func(t testing.TB, f bool) *cast { return newCast(t, f, &stageDeal{abort: true}) },
	"pairing":                           func(t testing.TB, f bool) *cast { return newCast(t, f, &stageDeal{pairing: true}) },
}

// The relay dies at any step, before or after the step has had its effect, in one process or
// in a function: both sides get what the other has sent, at least once, and nothing stays
// stored.
func TestCrashAtEveryStep(t *testing.T) {
	for name, story := range crashStories {
		for _, functions := range []bool{false, true} {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/functions=%t/after=%t", name, functions, after), func(t *testing.T) {
					steps := 0
					for n := 1; n <= steps || steps == 0; n++ {
						c := story(t, functions)
						c.crashAt, c.afterEffect = n, after
						c.play()
						crashed := c.ops >= n
						c.crashAt = 0
						c.check()
						if t.Failed() {
							t.Fatalf("with a crash at step %d", n)
						}
						if !crashed {
							if n < 30 {
								t.Fatalf("the story has only %d steps", n)
							}
							t.Logf("%d steps", n-1)
							return
						}
					}
				})
			}
		}
	}
}
