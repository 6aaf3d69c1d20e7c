package skald

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitLimit is how long (of fake time, in a bubble) something may take that is
// expected to happen.
const waitLimit = 5 * time.Minute

// recorder keeps the events of one Agent or Client, and its Run.
type recorder struct {
	t       *testing.T
	events  chan Event
	cancel  context.CancelFunc
	stopped chan error
	once    sync.Once
	err     error
}

func newRecorder(t *testing.T) *recorder {
	return &recorder{t: t, events: make(chan Event, 100_000), stopped: make(chan error, 1)}
}

func (r *recorder) start(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.stopped <- run(ctx) }()
	r.t.Cleanup(func() { r.stop() })
}

// stop tells Run to stop and returns what it returned.
func (r *recorder) stop() error {
	r.cancel()
	return r.result()
}

// result waits for Run to return by itself.
func (r *recorder) result() error {
	r.once.Do(func() {
		select {
		case r.err = <-r.stopped:
		case <-time.After(24 * time.Hour):
			r.t.Error("Run does not return")
		}
	})
	return r.err
}

// next returns the next event of a type, skipping others.
func next[E Event](t *testing.T, r *recorder) E {
	t.Helper()
	deadline := time.After(waitLimit)
	for {
		select {
		case e := <-r.events:
			if want, ok := e.(E); ok {
				return want
			}
		case <-deadline:
			var e E
			t.Fatalf("no %T came", e)
			return e
		}
	}
}

// rest returns the events that have come and were not looked at.
func (r *recorder) rest() []Event {
	synctest.Wait()
	var all []Event
	for {
		select {
		case e := <-r.events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func ofType[E Event](all []Event) []E {
	var some []E
	for _, e := range all {
		if e, ok := e.(E); ok {
			some = append(some, e)
		}
	}
	return some
}

// zeroJitter is randomness with which Backoff adds nothing, and everything else
// still differs: only reads of 8 bytes are zero.
type zeroJitter struct{ n uint64 }

func (z *zeroJitter) Read(p []byte) (int, error) {
	z.n++
	for i := range p {
		p[i] = 0
		if len(p) != 8 {
			p[i] = byte(z.n*31 + uint64(i)*7)
		}
	}
	return len(p), nil
}

// testAgent is an Agent that runs.
type testAgent struct {
	*Agent
	*recorder
}

func (r *fakeRelay) agent(t *testing.T, change func(*AgentConfig)) testAgent {
	t.Helper()
	rec := newRecorder(t)
	cfg := AgentConfig{
		Config: Config{Store: &MemoryStore{}, OnEvent: ToChannel(rec.events), Dial: r.dial, Rand: &zeroJitter{n: 1}},
		URL:    r.url,
	}
	if change != nil {
		change(&cfg)
	}
	a, err := NewAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rec.start(a.Run)
	return testAgent{a, rec}
}

// testClient is a Client that may run.
type testClient struct {
	*Client
	*recorder
}

func (r *fakeRelay) client(t *testing.T, change func(*ClientConfig)) testClient {
	t.Helper()
	rec := newRecorder(t)
	cfg := ClientConfig{
		Config: Config{Store: &MemoryStore{}, OnEvent: ToChannel(rec.events), Dial: r.dial, Rand: &zeroJitter{n: 77}},
	}
	if change != nil {
		change(&cfg)
	}
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return testClient{c, rec}
}

// pair returns an agent and a client of it, both connected.
func (r *fakeRelay) pair(t *testing.T, change func(*AgentConfig), changeClient func(*ClientConfig)) (testAgent, testClient) {
	t.Helper()
	a := r.agent(t, func(c *AgentConfig) {
		c.Policy = AutoApprove
		if change != nil {
			change(c)
		}
	})
	next[Connected](t, a.recorder)
	return a, r.join(t, a, changeClient)
}

// join pairs one more client with an agent that approves by itself.
func (r *fakeRelay) join(t *testing.T, a testAgent, change func(*ClientConfig)) testClient {
	t.Helper()
	c := r.client(t, change)
	window, err := a.StartPairing(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Pair(t.Context(), window.QR); err != nil {
		t.Fatal(err)
	}
	c.start(c.Run)
	next[Connected](t, c.recorder)
	return c
}

// note makes a payload that carries a text.
func note(t *testing.T, text string) Payload {
	t.Helper()
	b, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	return Payload{Kind: KindNotification, Body: b}
}

func textOf(p Payload) string {
	var b struct{ Text string }
	if err := p.Decode(&b); err != nil {
		return fmt.Sprint(err)
	}
	return b.Text
}

func wantNotConnected(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrNotConnected) {
		t.Errorf("got %v, want ErrNotConnected", err)
	}
}
