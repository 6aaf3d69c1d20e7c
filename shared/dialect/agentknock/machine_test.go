package agentknock

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// combinations are those of the specification: exchange, request, response,
// completion.
var combinations = map[Phase][3][]Delivery{
	Open:    {{Accepted, Delivered}, {Absent, Accepted, Delivered}, {Absent}},
	Closing: {{Accepted, Delivered}, {Absent, Delivered, Discarded}, {Accepted}},
	Settled: {{Delivered}, {Absent, Delivered, Discarded}, {Delivered}},
	Expired: {{Delivered, Discarded}, {Absent, Delivered, Discarded}, {Absent, Discarded}},
}

func checkState(x Exchange) error {
	if x.Phase == Void {
		if x != (Exchange{}) {
			return fmt.Errorf("%v is void and remembers something", x)
		}
		return nil
	}
	c := combinations[x.Phase]
	if !slices.Contains(c[0], x.Request) || !slices.Contains(c[1], x.Response) || !slices.Contains(c[2], x.Completion) {
		return fmt.Errorf("%v is no valid combination", x)
	}
	if x.Response != Absent && x.Request != Delivered {
		return fmt.Errorf("%v has a response to a request that was not delivered", x)
	}
	return nil
}

// checkStep checks what must hold of each single step.
func checkStep(x Exchange, e Event, y Exchange, v Verdict) error {
	if err := checkState(y); err != nil {
		return err
	}
	if !x.Live() && y.Live() {
		return fmt.Errorf("%v is alive again as %v", x, y)
	}
	if x.Phase == Void && y.Phase != Void {
		return fmt.Errorf("a void exchange has become %v", y)
	}
	if y.Phase < x.Phase && y.Phase != Void {
		return fmt.Errorf("%v goes back to %v", x, y)
	}
	if x == y && v == Changed || x != y && v != Changed && v != Late {
		return fmt.Errorf("%v to %v has the verdict %d", x, y, v)
	}
	for _, k := range kinds {
		from, to := x.of(k), y.of(k)
		if y.Phase != Void && to < from {
			return fmt.Errorf("the %s goes from %v back to %v", k, from, to)
		}
		// A payload is taken only with its own event, once.
		sent := map[kind]Event{response: ResponseSent, completion: CompletionSent}
		if to == Accepted && from != Accepted && (from != Absent || sent[k] != e || k == request) {
			return fmt.Errorf("the %s is accepted from %v by event %d", k, from, e)
		}
		if to == Delivered && from == Discarded {
			return fmt.Errorf("the %s was discarded and is delivered", k)
		}
	}
	return nil
}

// Every state that can be reached, and every event in it.
func TestExchangeEverywhere(t *testing.T) {
	seen := map[Exchange]bool{Begun(): true, {}: true}
	for todo := []Exchange{Begun(), {}}; len(todo) > 0; todo = todo[1:] {
		x := todo[0]
		for e := range Event(events) {
			y, v := x.Next(e)
			if err := checkStep(x, e, y, v); err != nil {
				t.Errorf("event %d: %v", e, err)
			}
			if !seen[y] {
				seen[y] = true
				todo = append(todo, y)
			}
		}
	}
	// All combinations of the table but those that its own rule excludes: a response
	// without a delivered request.
	want := 1 // void
	for _, c := range combinations {
		for _, rq := range c[0] {
			for _, rs := range c[1] {
				if rs == Absent || rq == Delivered {
					want += len(c[2])
				}
			}
		}
	}
	if len(seen) != want {
		t.Errorf("%d states can be reached, the specification has %d", len(seen), want)
	}
}

// Whatever happens in whatever order: no message is delivered with two payloads.
func TestExchangeOnePayload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := Begun()
		payload := map[kind]int{request: -1} // the number of the event that brought it
		taken := map[kind]map[int]bool{request: {}, response: {}, completion: {}}
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, events-1), 0, 40).Draw(t, "events") {
			e := Event(n)
			y, v := x.Next(e)
			if err := checkStep(x, e, y, v); err != nil {
				t.Fatal(err)
			}
			for _, k := range kinds {
				if y.of(k) == Accepted && x.of(k) != Accepted {
					payload[k] = i
				}
				if y.of(k) == Accepted || x.of(k) == Accepted && y.of(k) == Delivered {
					taken[k][payload[k]] = true
				}
			}
			x = y
		}
		for k, which := range taken {
			if len(which) > 1 {
				t.Fatalf("the %s was delivered with %d payloads", k, len(which))
			}
		}
	})
}

// The way through the table that is normal, and the ways out of it.
func TestExchangeStories(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []Event
		want   Exchange
		last   Verdict
	}{
		{"all the way", []Event{RequestTaken, ResponseSent, ResponseTaken, CompletionSent, CompletionTaken}, Exchange{Settled, Delivered, Delivered, Delivered}, Changed},
		{"a response says that the request is there", []Event{ResponseSent}, Exchange{Open, Delivered, Accepted, Absent}, Changed},
		{"a completion discards a response that waits", []Event{ResponseSent, CompletionSent}, Exchange{Closing, Delivered, Discarded, Accepted}, Changed},
		{"and one that comes later", []Event{CompletionSent, ResponseSent}, Exchange{Closing, Delivered, Absent, Accepted}, Late},
		{"aborted before the device has it", []Event{CompletionSent, CompletionTaken}, Exchange{Closing, Accepted, Absent, Accepted}, Ignored},
		{"aborted, then taken", []Event{CompletionSent, RequestTaken, CompletionTaken}, Exchange{Settled, Delivered, Absent, Delivered}, Changed},
		{"expired before anything", []Event{End}, Exchange{Expired, Discarded, Absent, Absent}, Changed},
		{"expired while all waits", []Event{CompletionSent, End}, Exchange{Expired, Discarded, Absent, Discarded}, Changed},
		{"expired with a response", []Event{ResponseSent, End}, Exchange{Expired, Delivered, Discarded, Absent}, Changed},
		{"a completion of what has expired", []Event{End, CompletionSent}, Exchange{Expired, Discarded, Absent, Discarded}, Changed},
		{"an ack of what was never sent", []Event{ResponseTaken}, Begun(), Ignored},
		{"a request again", []Event{RequestSent}, Begun(), Repeated},
		{"a request of what has expired", []Event{End, RequestSent}, Exchange{Expired, Discarded, Absent, Absent}, Dead},
		{"forgotten", []Event{End, Forget, RequestSent}, Exchange{}, Dead},
		{"a response to what is forgotten", []Event{End, Forget, ResponseSent}, Exchange{}, Dead},
		{"a second response", []Event{ResponseSent, ResponseTaken, ResponseSent}, Exchange{Open, Delivered, Delivered, Absent}, Repeated},
	} {
		x, v := Begun(), Changed
		for _, e := range c.events {
			x, v = x.Next(e)
		}
		if x != c.want || v != c.last {
			t.Errorf("%s: %v with verdict %d, want %v with %d", c.name, x, v, c.want, c.last)
		}
	}
}
