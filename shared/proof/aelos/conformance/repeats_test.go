package conformance

import (
	"fmt"
	"testing"

	wire "blindpost/shared/client/aelos"
)

// What a relay tells once more, because an answer was lost or came too late, is read over;
// all that is news is not.
func TestNews(t *testing.T) {
	var h heard
	for i, step := range []struct {
		told wire.Control
		news string // "" for none
	}{
		{wire.Welcome{Proto: 2}, "{2}"},
		{wire.Welcome{Proto: 2}, ""},
		{wire.BoatStatus{Online: false}, "{false}"},
		{wire.BoatStatus{Online: false}, ""},
		{wire.Welcome{Proto: 2}, ""},
		{wire.BoatStatus{Online: true}, "{true}"},
		{wire.Viewers{Detach: []string{"old"}}, "{0 [] []}"},
		{wire.Viewers{}, ""},
		{wire.Viewers{Count: 1, Attach: []string{"a"}}, "{1 [a] []}"},
		{wire.Viewers{Count: 2, Attach: []string{"a", "b"}}, "{2 [b] []}"},
		{wire.Viewers{Count: 2, Attach: []string{"a", "b"}, Detach: []string{"old"}}, ""},
		{wire.Viewers{Count: 1, Detach: []string{"a"}}, "{1 [] [a]}"},
		{wire.Viewers{Count: 1, Attach: []string{"b"}, Detach: []string{"a"}}, ""},
		{wire.Viewers{Count: 0, Attach: []string{"b"}}, "{0 [] []}"}, // a lie is told to the story
		{wire.Viewers{Count: 2, Attach: []string{"a"}}, "{2 [a] []}"},
		{wire.Pong{}, "{}"},
		{wire.Pong{}, "{}"},
	} {
		got := ""
		if c, ok := h.news(step.told); ok {
			got = fmt.Sprint(c)
		}
		if got != step.news {
			t.Errorf("step %d: of %v the story hears %q, want %q", i, step.told, got, step.news)
		}
	}
}
