package wiring_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/coder/websocket"

	"blindpost/functions/internal/wiring"
	"blindpost/shared/dialect/skald/skaldpb"
)

// A phone that sends, hangs up and redials at once, several times. The frames of its
// connections wait in queues of their own, and all of them arrive in order.
func TestHangUpAndRedial(t *testing.T) {
	h := open(t, false, false)
	agentKey, phoneKey := newKey(t), newKey(t)
	agent := h.agent(agentKey)
	h.pair(agent, phoneKey)
	const rounds, each = 7, 10
	for round := range rounds {
		phone := h.client(phoneKey, namespaceOf(agentKey))
		for i := range each {
			phone.message(agentKey, fmt.Sprintf("message %d", round*each+i), false)
		}
		if round%2 == 0 {
			_ = phone.ws.Close(websocket.StatusNormalClosure, "")
		} else {
			_ = phone.ws.CloseNow()
		}
	}
	for next := 0; next < rounds*each; {
		f := agent.read()
		if f.GetMessage() == nil {
			continue // the phone comes and goes
		}
		got := string(f.GetMessage().GetCiphertext())
		if cut := next/each%2 == 1; cut && got == fmt.Sprintf("message %d", (next/each+1)*each) {
			// The reset of a socket that is closed without a word throws away what the
			// front has not read. The front has accepted none of that.
			next = (next/each + 1) * each
		}
		if want := fmt.Sprintf("message %d", next); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		next++
	}
}

// The functions are not told of the end of a connection, and no peer writes to it: the
// schedule finds out.
func TestScheduleFindsALostDisconnect(t *testing.T) {
	h := open(t, false, false)
	agentKey, phoneKey := newKey(t), newKey(t)
	agent := h.agent(agentKey)
	h.pair(agent, phoneKey)
	phone := h.client(phoneKey, namespaceOf(agentKey))
	agent.wantPresence(phoneKey, skaldpb.Status_STATUS_ONLINE)
	h.mute.Store(true)
	_ = phone.ws.Close(websocket.StatusNormalClosure, "")
	h.eventually("API Gateway to know", func() bool { return h.muted.Load() > 0 })
	payload, err := os.ReadFile("../../sweeper/testdata/schedule.json")
	if err != nil {
		t.Fatal(err)
	}
	h.ahead.Store(int64(31 * time.Minute)) // the relay looks at each half hour, whenever this runs
	if out, err := h.function(wiring.Sweeper)(t.Context(), payload); err != nil || string(out) != "{}" {
		t.Fatalf("got %s, %v", out, err)
	}
	agent.wantPresence(phoneKey, skaldpb.Status_STATUS_OFFLINE)
}
