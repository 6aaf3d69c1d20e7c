//go:build aws

package localaws_test

import (
	"testing"

	"blindpost/shared/proof/localaws"
)

// Many frames, back to back on one connection, arrive in order, whether or not the
// recipient is there when they are sent.
func TestOrderThroughTheIngress(t *testing.T) {
	const letters = 500
	f := open(t, plan{ingress: true, house: localaws.Options{Env: roomy, Repeat: 0.2}})
	h, agent := f.household()
	phone := h.dialPhone()
	for n := range letters {
		agent.send(h.letter(n))
	}
	phone.wantLetters(0, letters-1, false)
	if n := f.Lambda.Calls("Message"); n < letters/10 {
		t.Errorf("the function message was called %d times for %d frames", n, letters)
	}
	phone.Close()
	for n := range 150 { // they wait in the mailbox
		agent.send(h.letter(letters + n))
	}
	agent.barrier()
	h.dialPhone().wantLetters(letters, letters+149, true)
	wantNothingDead(t, f)
}

// roomy are settings under which a test may do as much as it likes.
var roomy = []string{
	"BLINDPOST_MESSAGES_PER_MINUTE=0", "BLINDPOST_CONTROL_FRAMES_PER_MINUTE=0", "BLINDPOST_CONNECTIONS_PER_IP=0",
	"BLINDPOST_MAILBOX_CAP=1000",
}

func wantNothingDead(t *testing.T, f *front) {
	t.Helper()
	if dead := f.Queues.Dead(f.Ingress); len(dead) != 0 {
		t.Errorf("%d messages of the ingress queue were put aside", len(dead))
	}
	if dead := f.Queues.Dead(f.Jobs); len(dead) != 0 {
		t.Errorf("%d jobs were put aside", len(dead))
	}
}
