package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// end is one end of one connection, as a story has it. Its methods fail the test and
// may be called only by the test's own goroutine.
type end struct {
	t    *testing.T
	r    *relay
	name string
	role peer.Role
	conn *peer.Conn
	// seen are frames that may come again.
	seen map[string]bool
	// may are frames that may come, or not.
	may []peer.Frame
	// barrier is the exchange that settle asks for; one that has never been if its id is
	// "".
	barrier peer.Frame
}

func (r *relay) newEnd(t *testing.T, name string, role peer.Role, conn *peer.Conn) *end {
	e := &end{t: t, r: r, name: name, role: role, conn: conn, seen: make(map[string]bool)}
	t.Cleanup(func() {
		if waiting := conn.Waiting(); t.Failed() && len(waiting) > 0 {
			t.Logf("%s has unread:\n\t%s", name, strings.Join(waiting[:min(5, len(waiting))], "\n\t"))
		}
		conn.Drop()
	})
	return e
}

// send sends a frame.
func (e *end) send(fs ...peer.Frame) {
	e.t.Helper()
	for _, f := range fs {
		if err := e.conn.Send(soon(e.t), f); err != nil {
			e.t.Fatalf("%s: %s: %v", e.name, f, err)
		}
	}
}

// sendText sends any text. The relay may hang up in the middle of it, so an error is
// no failure: the story goes on to say what the relay answers.
func (e *end) sendText(text string) { _ = e.conn.SendText(soon(e.t), []byte(text)) }

// keyOf tells frames apart.
func keyOf(f peer.Frame) string { return string(f.Encode()) }

func (e *end) repeats(f peer.Frame) bool {
	switch f.Type {
	case peer.Message, peer.Ack, peer.Receipt, peer.ClientState:
		return e.seen[keyOf(f)]
	}
	return false
}

// frame takes the next frame that is news.
func (e *end) frame() (peer.Frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		f, err := e.conn.Next(ctx)
		if err != nil {
			return f, err
		}
		optional := slices.ContainsFunc(e.may, func(m peer.Frame) bool { return keyOf(m) == keyOf(f) })
		if !e.repeats(f) && !optional {
			e.seen[keyOf(f)] = true
			return f, nil
		}
	}
}

// seeAgain makes the end see frames again that it has seen.
func (e *end) seeAgain() { clear(e.seen) }

// mayGet allows frames that the specification leaves open.
func (e *end) mayGet(fs ...peer.Frame) { e.may = append(e.may, fs...) }

// next takes the next frame, which has to be there.
func (e *end) next(what string) peer.Frame {
	e.t.Helper()
	f, err := e.frame()
	if err != nil {
		e.t.Fatalf("%s wants %s: %v", e.name, what, err)
	}
	return f
}

// want wants exactly these frames, in this order.
func (e *end) want(fs ...peer.Frame) {
	e.t.Helper()
	for _, want := range fs {
		got := e.next(want.String())
		if want.Type == peer.Error {
			e.wantReport(want, got)
			continue
		}
		if e.r.Processes && ackBefore(want, got) {
			got = e.next(want.String())
		}
		if keyOf(got) != keyOf(want) {
			e.t.Fatalf("%s wants %s, gets %s", e.name, want, got)
		}
	}
}

// ackBefore reports whether a frame is the ack that goes before the receipt that is
// wanted. Of several processes one does not know whether another has sent it, perhaps
// on an earlier socket, and says it again.
func ackBefore(want, got peer.Frame) bool {
	return want.Type == peer.Receipt && got.Type == peer.Ack &&
		got.ClientID == want.ClientID && got.RequestID == want.RequestID && got.Kind == want.Kind
}

// wantReport compares what a peer may rely on in an error: all but the text, and the
// code only if it is named.
func (e *end) wantReport(want, got peer.Frame) {
	e.t.Helper()
	if got.Type != peer.Error || got.ClientID != want.ClientID || got.RequestID != want.RequestID || got.Retryable != want.Retryable ||
		(want.Code != "" && got.Code != want.Code) {
		e.t.Fatalf("%s wants %s, gets %s", e.name, want, got)
	}
}

// settle is the barrier: the relay has handled what this end sent, and has sent it
// nothing that the story has not asked for yet.
func (e *end) settle() {
	e.t.Helper()
	if e.barrier.RequestID != "" {
		e.send(e.barrier)
		if f := e.next("state"); f.Type != peer.State && f.Type != peer.Inactive || f.RequestID != e.barrier.RequestID {
			e.t.Fatalf("%s wants nothing but the answer to its resume, gets %s", e.name, f)
		}
		return
	}
	never := peer.Frame{Type: peer.Resume, ClientID: e.barrier.ClientID, RequestID: newID()}
	if never.ClientID == "" {
		never.ClientID = newID()
	}
	e.send(never)
	never.Type = peer.Inactive
	e.want(never)
}

// wantClosed wants the relay to have closed the connection, nothing before that, and
// on a front with close codes, one of these codes (any if none is named).
func (e *end) wantClosed(codes ...int) {
	e.t.Helper()
	f, err := e.frame()
	switch {
	case err == nil:
		e.t.Fatalf("%s wants to be hung up on, gets %s", e.name, f)
	case !errors.Is(err, peer.ErrClosed):
		e.t.Fatalf("%s wants to be hung up on: %v", e.name, err)
	}
	e.wantCode(err, codes...)
}

func (e *end) wantCode(err error, codes ...int) {
	e.t.Helper()
	if !e.r.CloseCodes {
		return
	}
	code := peer.CodeOf(err)
	if code < 0 || (len(codes) > 0 && !slices.Contains(codes, code)) {
		e.t.Fatalf("%s wants close code %v, gets %v", e.name, codes, err)
	}
	if what := e.r.secrets.In([]byte(err.Error())); what != "" {
		e.t.Fatalf("%s: the close reason tells %s", e.name, what)
	}
}

// wantEnd wants the end of the connection, whatever comes before it.
func (e *end) wantEnd(codes ...int) {
	e.t.Helper()
	for {
		_, err := e.frame()
		if err == nil {
			continue
		}
		if !errors.Is(err, peer.ErrClosed) {
			e.t.Fatalf("%s wants the end of the connection: %v", e.name, err)
		}
		e.wantCode(err, codes...)
		return
	}
}

// wantRejected wants a frame to be rejected: an error that is no use to retry, or the
// close code for an invalid frame, or both. It reports whether the connection is
// over.
func (e *end) wantRejected(what string) (over bool) {
	e.t.Helper()
	f, err := e.frame()
	switch {
	case errors.Is(err, peer.ErrClosed):
		e.wantCode(err, 1008)
		return true
	case err != nil:
		e.t.Fatalf("%s wants %s to be rejected: %v", e.name, what, err)
	case f.Type != peer.Error || f.Retryable:
		e.t.Fatalf("%s wants %s to be rejected, gets %s", e.name, what, f)
	}
	if found := e.r.secrets.In([]byte(f.Text)); found != "" {
		e.t.Errorf("%s: the error tells %s", e.name, found)
	}
	// If it is going to hang up, it does so before it answers the next frame.
	_ = e.conn.Send(soon(e.t), peer.Frame{Type: peer.Resume, ClientID: e.clientID(), RequestID: newID()})
	_, err = e.frame()
	switch {
	case errors.Is(err, peer.ErrClosed):
		e.wantCode(err, 1008)
		return true
	case err != nil:
		e.t.Fatalf("%s after %s: %v", e.name, what, err)
	}
	return false
}

func (e *end) clientID() string {
	if e.barrier.ClientID != "" {
		return e.barrier.ClientID
	}
	return newID()
}

// close says goodbye, drop does not.
func (e *end) close() { e.conn.Close() }
func (e *end) drop()  { e.conn.Drop() }

// raw is any JSON text as payload.
func raw(text string) json.RawMessage { return json.RawMessage(text) }
