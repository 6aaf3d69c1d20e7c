package agentknock

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"
)

// start lets a client work against a script.
func start(t *testing.T, acts ...act) *Session {
	c := &Client{Relay: run(t, acts...), DeviceID: aRequest, ID: aClient, Token: NewToken()}
	s := c.Start(t.Context(), SessionOptions{Pause: time.Millisecond})
	t.Cleanup(s.Stop)
	return s
}

func (s *Session) ask() *Exchange { return s.Begin(aRequest, json.RawMessage(`"request"`)) }

// Begin before there is a connection is sent when there is one: late makes the first
// upgrade fail for a start.
var late = act{status: http.StatusServiceUnavailable}

// A whole exchange, broken off at every point where the table of recovery has a row.
func TestSessionRecovers(t *testing.T) {
	s := start(t, late,
		act{play: func(r *stage) { r.hear(messageOf(Request)) }}, // no acknowledgement: resend
		act{play: func(r *stage) { r.hear(messageOf(Request)); r.say(frameOf(Ack, Request)) }},
		act{play: func(r *stage) { // acknowledged: resume
			r.hear(frameOf(Resume, ""))
			r.say(stateOf("open", "delivered", "absent", "absent"))
		}},
		act{play: func(r *stage) {
			r.hear(frameOf(Resume, ""))
			r.say(stateOf("open", "delivered", "accepted", "absent"), messageOf(Response))
			r.hear(frameOf(Ack, Response)) // before the completion
			r.hear(messageOf(Completion))
			other := messageOf(Response)
			other.Payload = json.RawMessage(`"another"`)
			r.say(other) // acknowledged, and otherwise ignored
			r.hear(frameOf(Ack, Response))
		}},
		act{play: func(r *stage) {
			r.hear(frameOf(Ack, Response))
			r.hear(messageOf(Completion))
			r.say(frameOf(Ack, Completion))
			r.stay()
		}},
	)
	x := s.ask()
	if err := errors.Join(x.Accepted(soon(t)), x.Delivered(soon(t))); err != nil {
		t.Fatal(err)
	}
	payload, err := x.Response(soon(t))
	if err != nil || string(payload) != `"response"` {
		t.Fatalf("the response is %s, %v", payload, err)
	}
	if err := x.Complete(soon(t), json.RawMessage(`"completion"`)); err != nil {
		t.Fatal(err)
	}
	if payload, err := x.Response(soon(t)); err != nil || string(payload) != `"response"` {
		t.Errorf("afterwards the response is %s, %v", payload, err)
	}
}

func TestSessionFailures(t *testing.T) {
	for name, c := range map[string]struct {
		acts []act
		want func(err error, s *Session) bool
	}{
		"a final error": {
			[]act{late, {play: func(r *stage) { r.hear(messageOf(Request)); r.say(errorOf("INVALID_REQUEST_ID", 0)); r.stay() }}},
			func(err error, _ *Session) bool {
				var e *RelayError
				return errors.As(err, &e) && e.Code == "INVALID_REQUEST_ID"
			},
		},
		"an error about nothing in particular": {
			[]act{late, {play: func(r *stage) {
				r.hear(messageOf(Request))
				r.say(Frame{Type: Error, Code: "CLIENT_INACTIVE", Text: "no"})
				r.stay()
			}}},
			func(err error, _ *Session) bool {
				var e *RelayError
				return errors.As(err, &e) && e.Code == "CLIENT_INACTIVE"
			},
		},
		"inactive": {
			[]act{late, {play: func(r *stage) { r.hear(messageOf(Request)); r.say(frameOf(Inactive, "")); r.stay() }}},
			func(err error, _ *Session) bool { return errors.Is(err, ErrInactive) },
		},
		"expired": {
			[]act{late, {play: func(r *stage) {
				r.hear(messageOf(Request))
				r.say(stateOf("expired", "discarded", "absent", "absent"))
				r.stay()
			}}},
			func(err error, _ *Session) bool { return errors.Is(err, ErrInactive) },
		},
		"suspended": {
			[]act{late, {play: func(r *stage) { r.hear(messageOf(Request)); r.close(4002) }}},
			func(err error, s *Session) bool { return CodeOf(s.Err()) == 4002 && CodeOf(err) == 4002 },
		},
		"not let in": {
			[]act{late, {status: http.StatusForbidden}},
			func(err error, s *Session) bool {
				var no *Refusal
				return errors.As(s.Err(), &no) && no.Status == http.StatusForbidden
			},
		},
		"a fault of the relay": {
			[]act{late, {play: func(r *stage) { r.say(messageOf(Request)); r.stay() }}},
			func(err error, s *Session) bool {
				var fault *Fault
				return errors.As(s.Err(), &fault)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, c.acts...)
			_, err := s.ask().Response(soon(t))
			if err == nil || !c.want(err, s) {
				t.Errorf("it ends with %v, %v", err, s.Err())
			}
		})
	}
}

// Who is told to wait waits, then goes on as after any lost connection.
func TestSessionHonoursRetryAfter(t *testing.T) {
	const pause = 150 * time.Millisecond
	var told time.Time
	s := start(t,
		act{status: http.StatusTooManyRequests, header: map[string]string{"Retry-After": "0"}}, late,
		act{play: func(r *stage) {
			r.hear(messageOf(Request))
			told = time.Now()
			r.say(errorOf("RATE_LIMITED", pause))
			r.stay()
		}},
		act{play: func(r *stage) {
			if waited := time.Since(told); waited < pause {
				r.t.Errorf("it waited for %v", waited)
			}
			r.hear(messageOf(Request))
			r.say(frameOf(Ack, Request))
			r.stay()
		}},
	)
	if err := s.ask().Accepted(soon(t)); err != nil {
		t.Fatal(err)
	}
}

// A request without an answer ends with its context.
func TestSessionWaitsEnd(t *testing.T) {
	s := start(t, act{play: func(r *stage) { r.stay() }})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.ask().Accepted(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
	s.Stop()
	if err := s.ask().Accepted(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end it ends with %v", err)
	}
}
