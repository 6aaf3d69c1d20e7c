package aelos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// deliver gives a frame to the relay as a queue does: again and again until it has
// been handled, in any process.
func (l *line) deliver(e gateway.FrameEvent) {
	l.w.t.Helper()
	for try := range 12 {
		n := l.w.nodes[l.w.next()%len(l.w.nodes)]
		if _, err := n.core.Frame(context.Background(), e); err == nil {
			return
		}
		time.Sleep(time.Second << min(try, 3))
	}
	l.w.t.Fatal("a frame could not be handled")
}

// A process dies at every write that there is, before or after it is done, while it
// admits a viewer; then the frame comes again, or the connection ends, or nothing
// happens at all. In the end all peers know the state of the roster.
func TestDyingWhileAViewerComes(t *testing.T) {
	for _, after := range []string{"again", "disconnect", "nothing"} {
		for _, done := range []bool{false, true} {
			for n := 1; ; n++ {
				died := false
				t.Run(fmt.Sprintf("%s/done=%v/%d", after, done, n), func(t *testing.T) {
					story(t, func(w *world) {
						boat, first := w.boat(2), w.viewer(2)
						l := w.dial(1)
						e := l.event(fmt.Appendf(nil, `{"t":"hello","proto":2,"role":"viewer","token":%q}`, mint(t, secretA, viewerClaims("org", "boat"))), true)
						w.table.dieAfter(n, done)
						_, err := l.n.core.Frame(context.Background(), e)
						w.table.alive()
						if died = err != nil; died && !errors.Is(err, errDied) {
							t.Fatal(err)
						}
						switch after {
						case "again":
							l.deliver(e)
							got := l.got()
							if len(got) < 2 || got[0] != welcome2 || got[len(got)-1] != online {
								t.Errorf("the viewer has got %q", got)
							}
							if r := w.roster("org", "boat"); len(r.Viewers) != 2 {
								t.Errorf("%d viewers are attached", len(r.Viewers))
							}
						case "disconnect":
							l.hangUp()
							if r := w.roster("org", "boat"); len(r.Viewers) != 1 {
								t.Errorf("%d viewers are attached", len(r.Viewers))
							}
						}
						time.Sleep(time.Minute)
						w.wantTruth(believe(t, boat.got(), false))
						first.want(welcome2, online)
					}, functions)
				})
				if !died || n > 50 {
					if n < 4 || n > 50 {
						t.Errorf("%d writes", n)
					}
					break
				}
			}
		}
	}
}

// The same while a boat takes over, and while it leaves.
func TestDyingWhileABoatComesOrGoes(t *testing.T) {
	for _, what := range []string{"come", "take over", "go"} {
		for _, done := range []bool{false, true} {
			for n := 1; ; n++ {
				died := false
				t.Run(fmt.Sprintf("%s/done=%v/%d", what, done, n), func(t *testing.T) {
					story(t, func(w *world) {
						v := w.viewer(2)
						old := w.dial()
						if what != "come" {
							old = w.boat(2)
						}
						v.got()
						hello := fmt.Appendf(nil, `{"t":"hello","proto":2,"role":"boat","token":%q}`, mint(t, secretA, boatClaims("org", "boat")))
						time.Sleep(time.Second)
						l := w.dial(1)
						e := l.event(hello, true)
						w.table.dieAfter(n, done)
						var err error
						if what == "go" {
							old.end(gateway.CloseNormal)
							err = old.n.core.Disconnect(context.Background(), gateway.DisconnectEvent{Conn: old.id})
						} else {
							_, err = l.n.core.Frame(context.Background(), e)
						}
						w.table.alive()
						died = err != nil
						time.Sleep(time.Second)
						if what == "go" {
							for range 5 { // the queue brings it again
								if err = old.n.core.Disconnect(context.Background(), gateway.DisconnectEvent{Conn: old.id}); err == nil {
									break
								}
								time.Sleep(5 * time.Second)
							}
							if err != nil {
								t.Fatal(err)
							}
							if got := v.got(); len(got) == 0 || got[len(got)-1] != offline {
								t.Errorf("the viewer has got %q", got)
							}
							return
						}
						l.deliver(e)
						w.wantTruth(believe(t, l.got(), false))
						got := v.got()
						if what == "take over" && len(got) > 0 {
							t.Errorf("the viewer has got %q", got)
						}
						if what == "come" && !slices.Contains(got, online) {
							t.Errorf("the viewer has got %q", got)
						}
						time.Sleep(time.Minute)
						if what == "take over" {
							old.wantClosed(gateway.CloseReplaced)
						}
						l.wantOpen()
						v.wantOpen()
					}, functions)
				})
				if !died || n > 50 {
					break
				}
			}
		}
	}
}
