package skald

import (
	"errors"
	"testing"
	"testing/synctest"
)

// After a write has failed there is no connection until the next one: who sends,
// waits for a connection and sends again does not go round in circles meanwhile.
func TestSendAgainAfterAFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		agent.rest()
		l := agent.current()
		l.w.abort()
		tries := 0
		for {
			tries++
			if tries > 10 {
				t.Fatal("it is sent again and again on the connection that has failed")
			}
			err := agent.Send(t.Context(), client.Identity().PublicKey(), note(t, "x"), false)
			if err == nil {
				break
			}
			if !errors.Is(err, ErrNotConnected) {
				t.Fatal(err)
			}
			if err := agent.WaitConnected(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if tries != 2 {
			t.Errorf("%d tries, want 2", tries)
		}
	})
}
