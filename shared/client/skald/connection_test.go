package skald

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"blindpost/shared/dialect/skald/skaldpb"
)

// gaps returns the times between dials in seconds, rounded down.
func gaps(r *fakeRelay) []int {
	var all []int
	times := r.dialTimes()
	for i := 1; i < len(times); i++ {
		all = append(all, int(times[i].Sub(times[i-1])/time.Second))
	}
	return all
}

func TestBackoffWhileTheRelayRefuses(t *testing.T) {
	for _, code := range []string{CodeRateLimited, CodeChallengeTimeout, CodeNotFound, CodeUnauthorized, "weather"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newPipeRelay(t)
				r.misbehave(hooks{refuse: func(*skaldpb.Auth) string { return code }})
				agent := r.agent(t, nil)
				for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
					got := next[Disconnected](t, agent.recorder)
					if !IsCode(got.Err, code) || got.RetryIn != want*time.Second || got.Final || got.WasConnected {
						t.Errorf("attempt %d: %+v", i+1, got)
					}
				}
				time.Sleep(time.Minute + time.Second)
				if got, want := gaps(r), []int{1, 2, 4, 8, 16, 32, 60, 60}; !slices.Equal(got, want) {
					t.Errorf("dialled after %v s, want %v", got, want)
				}
			})
		})
	}
}

func TestBackoffWhileTheRelayIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		rec := newRecorder(t)
		a, err := NewAgent(AgentConfig{URL: "wss://relay.test", Config: Config{
			Store: &MemoryStore{}, OnEvent: ToChannel(rec.events), Rand: &zeroJitter{},
			Dial: DialOptions{DialContext: (&pipeListener{closed: closedChannel()}).dial},
		}})
		if err != nil {
			t.Fatal(err)
		}
		rec.start(a.Run)
		began := time.Now()
		for time.Since(began) < time.Hour {
			next[Disconnected](t, rec)
			attempts++
		}
		// 7 attempts within 63 s, then one a minute.
		if attempts < 65 || attempts > 67 {
			t.Errorf("%d attempts in an hour", attempts)
		}
		// The app knows that the network is back.
		a.Reconnect()
		before := time.Now()
		if next[Disconnected](t, rec); time.Since(before) != 0 {
			t.Errorf("Reconnect waited %v", time.Since(before))
		}
		if got := next[Disconnected](t, rec); got.RetryIn != 2*time.Second {
			t.Errorf("backoff did not start again: %v", got.RetryIn)
		}
	})
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// The random part is added to each wait, and stays within a quarter.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		r.misbehave(hooks{refuse: func(*skaldpb.Auth) string { return CodeRateLimited }})
		agent := r.agent(t, func(c *AgentConfig) { c.Rand = nil })
		distinct := map[time.Duration]bool{}
		for range 50 {
			got := next[Disconnected](t, agent.recorder).RetryIn
			base := min(time.Minute, time.Second<<min(len(distinct), 6))
			if got < base || got >= base+base/4 {
				t.Errorf("wait %d is %v, want %v and up to a quarter more", len(distinct)+1, got, base)
			}
			distinct[got] = true
		}
		if len(distinct) < 50 {
			t.Errorf("only %d different waits", len(distinct))
		}
	})
}

func TestFinalRefusals(t *testing.T) {
	for _, code := range []string{CodeInvalidSignature, CodeBadRequest} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newPipeRelay(t)
				r.misbehave(hooks{refuse: func(*skaldpb.Auth) string { return code }})
				agent := r.agent(t, nil)
				err := agent.result()
				var refused *RelayError
				if !errors.As(err, &refused) || refused.Code != code || !refused.Auth {
					t.Errorf("ended with %v", err)
				}
				if got := next[Disconnected](t, agent.recorder); !got.Final || got.Err != err {
					t.Errorf("%+v", got)
				}
				if n := len(r.dialTimes()); n != 1 {
					t.Errorf("dialled %d times", n)
				}
			})
		})
	}
}

// A relay that takes everybody in and drops them at once is no reason to hammer
// it; after a connection that lasted, the backoff starts again.
func TestBackoffStartsAgainAfterAStableConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent := r.agent(t, nil)
		key := agent.Identity().PublicKey()
		drop := func(after time.Duration) time.Duration {
			next[Connected](t, agent.recorder)
			time.Sleep(after)
			synctest.Wait()
			r.peer(key).ws.CloseNow()
			got := next[Disconnected](t, agent.recorder)
			if !got.WasConnected || got.Err == nil {
				t.Errorf("%+v", got)
			}
			return got.RetryIn
		}
		for i, c := range []struct{ lasts, want time.Duration }{
			{0, time.Second},
			{0, 2 * time.Second},
			{59 * time.Second, 4 * time.Second},
			{time.Minute, time.Second},
			{0, 2 * time.Second},
		} {
			if got := drop(c.lasts); got != c.want {
				t.Errorf("%d: waits %v after %v, want %v", i, got, c.lasts, c.want)
			}
		}
	})
}

// Two processes with one identity would replace each other for ever.
func TestReplacedIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		first := r.agent(t, nil)
		next[Connected](t, first.recorder)
		second := r.agent(t, nil) // the same randomness, so the same seed
		if err := first.result(); !errors.Is(err, ErrReplaced) {
			t.Errorf("first ended with %v", err)
		}
		next[Connected](t, second.recorder)
		time.Sleep(time.Hour)
		if n := len(r.dialTimes()); n != 2 {
			t.Errorf("dialled %d times", n)
		}
	})
}

// A relay that vanishes without a word is noticed within KeepAlive and
// PongTimeout; one that is merely quiet is not given up.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		stuck := make(chan struct{})
		r.misbehave(hooks{intercept: func(_ *fakePeer, f *skaldpb.RelayFrame) bool {
			if f.GetMessage() != nil {
				<-stuck // its read loop stops, and with it the pongs
			}
			return false
		}})
		agent, client := r.pair(t, nil, nil)
		agent.rest()
		time.Sleep(10 * time.Minute)
		if got := ofType[Disconnected](agent.rest()); len(got) > 0 {
			t.Fatalf("gave up a quiet relay: %+v", got)
		}
		began := time.Now()
		if err := agent.Send(t.Context(), client.Identity().PublicKey(), note(t, "x"), false); err != nil {
			t.Fatal(err)
		}
		got := next[Disconnected](t, agent.recorder)
		if !errors.Is(got.Err, ErrSilent) || time.Since(began) > time.Minute {
			t.Errorf("after %v: %+v", time.Since(began), got)
		}
		close(stuck)
	})
}

// A busy user is no silence: while it is busy nothing is read, but the
// connection is not given up, and nothing is lost.
func TestBusyUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		busy := make(chan struct{})
		agent, client := r.pair(t, nil, func(c *ClientConfig) {
			record := c.OnEvent
			c.QueueSize = 3
			c.OnEvent = func(ctx context.Context, e Event) {
				if m, ok := e.(Message); ok && m.Counter == 1 {
					<-busy
				}
				record(ctx, e)
			}
		})
		for i := range 20 {
			if err := agent.Send(t.Context(), client.Identity().PublicKey(), note(t, fmt.Sprint(i)), false); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := len(client.link.q.items); n > 4 {
			t.Errorf("%d events wait", n)
		}
		time.Sleep(4 * time.Minute)
		close(busy)
		for i := range 20 {
			if got := next[Message](t, client.recorder); textOf(got.Payload) != fmt.Sprint(i) {
				t.Errorf("message %d is %q", i, textOf(got.Payload))
			}
		}
		if got := ofType[Disconnected](client.rest()); len(got) > 0 {
			t.Errorf("gave up: %+v", got)
		}
	})
}

// The user gets busy just when a pong is due: it lies unread, but the relay is
// not to blame.
func TestBusyUserWhilePonging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		busy := make(chan struct{})
		agent, client := r.pair(t, nil, func(c *ClientConfig) {
			record := c.OnEvent
			c.QueueSize = 3
			c.OnEvent = func(ctx context.Context, e Event) {
				if m, ok := e.(Message); ok && m.Counter == 1 {
					<-busy
				}
				record(ctx, e)
			}
			// The relay has to get rid of its pong, though the client does not read it.
			c.Dial.DialContext = bufferedDial(c.Dial.DialContext)
		})
		slow := r.peer(client.Identity().PublicKey())
		r.misbehave(hooks{intercept: func(p *fakePeer, f *skaldpb.RelayFrame) bool {
			if p == slow && f.GetMessage() != nil {
				time.Sleep(4 * time.Second)
			}
			return false
		}})
		synctest.Wait()
		time.Sleep(44*time.Second + 500*time.Millisecond)
		if err := client.Send(t.Context(), note(t, "slows the relay down"), false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the client has pinged, and waits
		for range 10 {
			if err := agent.Send(t.Context(), client.Identity().PublicKey(), note(t, "x"), false); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		close(busy)
		for range 10 {
			next[Message](t, client.recorder)
		}
		if got := ofType[Disconnected](client.rest()); len(got) > 0 {
			t.Errorf("gave up: %+v", got)
		}
	})
}

// What waits is handed out before Run returns.
func TestStopHandsOutWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		busy := make(chan struct{})
		agent, client := r.pair(t, nil, func(c *ClientConfig) {
			record := c.OnEvent
			c.OnEvent = func(ctx context.Context, e Event) {
				if m, ok := e.(Message); ok && m.Counter == 1 {
					<-busy
				}
				record(ctx, e)
			}
		})
		for range 5 {
			if err := agent.Send(t.Context(), client.Identity().PublicKey(), note(t, "x"), false); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		client.cancel()
		time.Sleep(time.Minute)
		if len(client.stopped) > 0 {
			t.Error("Run returned while the user was busy")
		}
		close(busy)
		if err := client.result(); err != nil {
			t.Error(err)
		}
		if got := ofType[Message](client.rest()); len(got) != 5 {
			t.Errorf("%d of 5 messages", len(got))
		}
	})
}

func TestRunOnlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		if err := agent.Run(t.Context()); !errors.Is(err, ErrRunning) {
			t.Errorf("agent: %v", err)
		}
		if err := client.Pair(t.Context(), someQR(t)); !errors.Is(err, ErrRunning) {
			t.Errorf("client: %v", err)
		}
		if err := agent.WaitConnected(t.Context()); err != nil {
			t.Error(err)
		}
		agent.stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantNotConnected(t, agent.WaitConnected(ctx))
		wantNotConnected(t, agent.Send(t.Context(), client.Identity().PublicKey(), note(t, "x"), false))
	})
}

// The relay must take the authorised list. If it does not, or does not answer,
// the next connection declares it again.
func TestAuthorizeHasToBeTaken(t *testing.T) {
	for name, c := range map[string]struct {
		answer *skaldpb.RelayFrame
		want   func(error) bool
	}{
		"refused":  {errorFrame(CodeRateLimited), func(err error) bool { return IsCode(err, CodeRateLimited) }},
		"no reply": {nil, func(err error) bool { return errors.Is(err, ErrSilent) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newPipeRelay(t)
				left := 2
				r.misbehave(hooks{intercept: func(p *fakePeer, f *skaldpb.RelayFrame) bool {
					if f.GetAuthorize() == nil || left == 0 {
						return false
					}
					left--
					if c.answer != nil {
						p.out <- c.answer
					}
					return true
				}})
				agent := r.agent(t, nil)
				for range 2 {
					if got := next[Disconnected](t, agent.recorder); !c.want(got.Err) || !got.WasConnected {
						t.Errorf("%+v", got)
					}
				}
				next[Declared](t, agent.recorder)
			})
		})
	}
}

// An Error frame names nothing. It is the request's only where it can be
// nothing else's.
func TestErrorsAreNotBlamedOnTheWrongRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		agent.rest()
		hold := false
		r.misbehave(hooks{intercept: func(p *fakePeer, f *skaldpb.RelayFrame) bool {
			switch {
			case f.GetMessage() != nil:
				time.Sleep(2 * time.Second) // the request is on its way by now
				p.out <- errorFrame(CodeQueueFull)
				return true
			case f.GetPresenceRequest() != nil && hold:
				p.out <- errorFrame(CodeBadRequest)
				return true
			}
			return false
		}})
		// The error is the message's, though the request waits when it comes.
		if err := agent.Send(t.Context(), client.Identity().PublicKey(), note(t, "x"), false); err != nil {
			t.Fatal(err)
		}
		if _, err := agent.Presence(t.Context()); err != nil {
			t.Errorf("request got the message's error: %v", err)
		}
		if got := next[Fault](t, agent.recorder); !IsCode(got.Err, CodeQueueFull) {
			t.Errorf("%+v", got)
		}
		// With nothing else under way it is the request's, at once.
		hold = true
		began := time.Now()
		if _, err := agent.Presence(t.Context()); !IsCode(err, CodeBadRequest) || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		hold = false
		if _, err := agent.Presence(t.Context()); err != nil {
			t.Error(err)
		}
		if got := ofType[Disconnected](agent.rest()); len(got) > 0 {
			t.Errorf("%+v", got)
		}
	})
}

// A caller that does not want to wait leaves the request behind, and its answer
// is not taken for that of the next.
func TestAbandonedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		delay := time.Duration(0)
		r.misbehave(hooks{intercept: func(_ *fakePeer, f *skaldpb.RelayFrame) bool {
			if f.GetPresenceRequest() != nil {
				time.Sleep(delay)
			}
			return false
		}})
		agent := r.agent(t, nil)
		next[Declared](t, agent.recorder)
		delay = 5 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := agent.Presence(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		began := time.Now()
		if online, err := agent.Presence(t.Context()); err != nil || len(online) != 1 || time.Since(began) != 9*time.Second {
			t.Errorf("after %v: %v, %v", time.Since(began), online, err)
		}
	})
}

// Nonsense from the relay is reported, and does no harm.
func TestNonsenseFromTheRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		agent.rest()
		p := r.peer(agent.Identity().PublicKey())
		short := []byte{1, 2, 3}
		for _, f := range []*skaldpb.RelayFrame{
			{Frame: &skaldpb.RelayFrame_Message{Message: &skaldpb.Message{Peer: short}}},
			{Frame: &skaldpb.RelayFrame_PeerOffline{PeerOffline: &skaldpb.PeerOffline{}}},
			{Frame: &skaldpb.RelayFrame_PresenceEvent{PresenceEvent: &skaldpb.PresenceEvent{Pubkey: short}}},
			{Frame: &skaldpb.RelayFrame_ClientPaired{ClientPaired: &skaldpb.ClientPaired{ClientEd25519Pub: short}}},
		} {
			p.out <- f
			if got := next[Fault](t, agent.recorder); !errors.Is(got.Err, ErrProtocol) {
				t.Errorf("%T: %v", f.Frame, got.Err)
			}
		}
		for _, m := range []struct {
			kind websocket.MessageType
			data string
		}{
			{websocket.MessageBinary, "\xff\xff\xff"},
			{websocket.MessageText, `{"message":"Internal server error"}`},
		} {
			if err := p.ws.Write(t.Context(), m.kind, []byte(m.data)); err != nil {
				t.Fatal(err)
			}
			if got := next[Fault](t, agent.recorder); !errors.Is(got.Err, ErrProtocol) {
				t.Errorf("%v", got.Err)
			}
		}
		// Unrequested frames, and those of a later protocol, are ignored.
		for _, f := range []*skaldpb.RelayFrame{
			{},
			{Frame: &skaldpb.RelayFrame_Challenge{Challenge: &skaldpb.Challenge{}}},
			{Frame: &skaldpb.RelayFrame_AuthorizeOk{AuthorizeOk: &skaldpb.AuthorizeOk{}}},
			{Frame: &skaldpb.RelayFrame_PresenceList{PresenceList: &skaldpb.PresenceList{}}},
			{Frame: &skaldpb.RelayFrame_PresenceEvent{PresenceEvent: &skaldpb.PresenceEvent{Pubkey: make([]byte, 32)}}},
		} {
			p.out <- f
		}
		if got := agent.rest(); len(got) > 0 {
			t.Errorf("%+v", got)
		}
		if err := client.Send(t.Context(), note(t, "still here"), false); err != nil {
			t.Fatal(err)
		}
		next[Message](t, agent.recorder)
	})
}

// Run stops at once, even while a relay that does not read keeps it from
// declaring its clients.
func TestStopWhileDeclaring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ns := mustIdentity(t, 1).Namespace()
		stuck := make(chan struct{})
		url, o := scripted(t, func(ctx context.Context, ws *websocket.Conn) {
			challenge := &skaldpb.Challenge{Nonce: make([]byte, 32)}
			_ = ws.Write(ctx, websocket.MessageBinary, mustFrame(t, &skaldpb.RelayFrame{
				Frame: &skaldpb.RelayFrame_Challenge{Challenge: challenge}}))
			_, _, _ = ws.Read(ctx)
			_ = ws.Write(ctx, websocket.MessageBinary, mustFrame(t, &skaldpb.RelayFrame{
				Frame: &skaldpb.RelayFrame_AuthOk{AuthOk: &skaldpb.AuthOk{NamespaceId: ns[:]}}}))
			<-stuck
		})
		rec := newRecorder(t)
		a, err := NewAgent(AgentConfig{URL: url, Config: Config{Dial: o, OnEvent: ToChannel(rec.events),
			Store: NewMemoryStore(State{Role: RoleAgent, Seed: Seed{1}})}})
		if err != nil {
			t.Fatal(err)
		}
		rec.start(a.Run)
		time.Sleep(time.Second)
		began := time.Now()
		if err := rec.stop(); err != nil || time.Since(began) > time.Second {
			t.Errorf("stopped after %v: %v", time.Since(began), err)
		}
		if got := ofType[Connected](rec.rest()); len(got) > 0 {
			t.Error("reported as connected")
		}
		close(stuck)
	})
}

// Flush puts events before what comes after it: here an error of the relay that
// came ahead of the answer to a request, and a user that is slow.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		faults := 0
		agent, _ := r.pair(t, func(c *AgentConfig) {
			record := c.OnEvent
			c.OnEvent = func(ctx context.Context, e Event) {
				record(ctx, e)
				if _, ok := e.(Fault); ok {
					time.Sleep(time.Second)
					faults++
				}
			}
		}, nil)
		for range 3 {
			if err := agent.SendSealed(t.Context(), PublicKey{9}, Sealed{}, false); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := agent.Presence(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := agent.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("did not wait: %v", err)
		}
		if err := agent.Flush(t.Context()); err != nil || faults != 3 {
			t.Errorf("%d faults were handed out: %v", faults, err)
		}
		agent.stop()
		if err := agent.Flush(t.Context()); err != nil {
			t.Errorf("after Run: %v", err)
		}
	})
}
