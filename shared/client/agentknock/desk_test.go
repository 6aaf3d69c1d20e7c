package agentknock

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func open(t *testing.T, take func(Incoming), acts ...act) *Desk {
	d := &Device{Relay: run(t, acts...), ID: aRequest, Token: NewToken()}
	k := d.Start(t.Context(), DeskOptions{OnMessage: take, Pause: time.Millisecond})
	t.Cleanup(k.Stop)
	return k
}

func caughtUp() Frame { return Frame{Type: CaughtUp} }

// What has been taken is taken once, and acknowledged as often as it comes.
func TestDeskTakesOnce(t *testing.T) {
	var got []string
	pairing := messageOf(Request)
	pairing.AddressID = "0123456789abcdef0123456789abcdef"
	k := open(t, func(in Incoming) { got = append(got, in.Kind+" "+in.AddressID+" "+string(in.Payload)) },
		act{play: func(r *stage) {
			r.say(Frame{Type: PushRegistration, State: "registered"}, pairing)
			r.hear(frameOf(Ack, Request))
		}},
		act{play: func(r *stage) {
			r.say(pairing, messageOf(Completion), caughtUp())
			r.hear(frameOf(Ack, Request))
			r.hear(frameOf(Ack, Completion))
			r.stay()
		}},
	)
	if err := errors.Join(k.Opened(soon(t), 2), k.CaughtUp(soon(t))); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != `request 0123456789abcdef0123456789abcdef "request"` || got[1] != `completion  "completion"` {
		t.Errorf("it took %q", got)
	}
	if k.Push() != "registered" {
		t.Errorf("the registration is %q", k.Push())
	}
}

// A response is sent until the relay has it; whether the client has it is asked.
func TestDeskResponds(t *testing.T) {
	k := open(t, nil,
		act{play: func(r *stage) { r.say(caughtUp()); r.hear(messageOf(Response)) }},
		act{play: func(r *stage) { r.hear(messageOf(Response)); r.say(frameOf(Ack, Response)) }},
		act{play: func(r *stage) {
			r.hear(frameOf(Resume, ""))
			r.say(stateOf("open", "delivered", "accepted", "absent"), frameOf(Receipt, Response))
			r.stay()
		}},
	)
	if err := k.CaughtUp(soon(t)); err != nil {
		t.Fatal(err)
	}
	a := k.Respond(aClient, aRequest, json.RawMessage(`"response"`))
	if err := errors.Join(a.Accepted(soon(t)), a.Received(soon(t))); err != nil {
		t.Error(err)
	}
}

func TestDeskIsToldThatItIsTooLate(t *testing.T) {
	for _, f := range []Frame{
		frameOf(Inactive, Response), frameOf(Inactive, ""), stateOf("closing", "delivered", "discarded", "accepted"), stateOf("expired", "delivered", "absent", "absent"),
	} {
		k := open(t, nil, act{play: func(r *stage) { r.say(caughtUp()); r.hear(messageOf(Response)); r.say(f); r.stay() }})
		if err := k.CaughtUp(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := k.Respond(aClient, aRequest, json.RawMessage(`"response"`)).Accepted(soon(t)); !errors.Is(err, ErrInactive) {
			t.Errorf("after %s it ends with %v", f, err)
		}
	}
}

// A state that was asked for on a lost connection may be set already.
func TestDeskSetsClientStates(t *testing.T) {
	ask := Frame{Type: SetClientState, ClientID: aClient, State: "active"}
	no := Frame{Type: Error, Code: "INVALID_CLIENT_STATE", Text: "no"}
	told := Frame{Type: ClientState, ClientID: aClient, State: "active"}
	pending := Frame{Type: ClientState, ClientID: aClient, State: "pending"}
	for name, c := range map[string]struct {
		acts []act
		ok   bool
	}{
		"set":         {[]act{{play: func(r *stage) { r.say(caughtUp()); r.hear(ask); r.say(pending, told); r.stay() }}}, true},
		"refused":     {[]act{{play: func(r *stage) { r.say(caughtUp()); r.hear(ask); r.say(no); r.stay() }}}, false},
		"set again":   {[]act{{play: func(r *stage) { r.say(caughtUp()); r.hear(ask) }}, {play: func(r *stage) { r.hear(ask); r.say(told); r.stay() }}}, true},
		"set already": {[]act{{play: func(r *stage) { r.say(caughtUp()); r.hear(ask) }}, {play: func(r *stage) { r.hear(ask); r.say(no); r.stay() }}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := open(t, nil, c.acts...)
			if err := k.CaughtUp(soon(t)); err != nil {
				t.Fatal(err)
			}
			if err := k.SetClientState(soon(t), aClient, "active"); (err == nil) != c.ok {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
