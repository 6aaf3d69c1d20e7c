package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

// take is an OnEvent function.
func (q *demoEvents) take(_ context.Context, e skaldclient.Event) { q.put(e) }

// complaints returns what should not have happened: messages that were refused
// and errors that no check has waited for.
func (q *demoEvents) complaints() []error {
	var all []error
	for _, e := range q.left() {
		switch e := e.(type) {
		case skaldclient.Dropped:
			all = append(all, fmt.Errorf("a message was refused: %w", e.Err))
		case skaldclient.Fault:
			all = append(all, e.Err)
		}
	}
	return all
}

// demoRun is an agent or phone that is at work.
type demoRun struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of run, once done is closed
}

// startRun lets run work until stop.
func startRun(run func(context.Context) error) *demoRun {
	ctx, cancel := context.WithCancel(context.Background())
	r := &demoRun{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = run(ctx)
	}()
	return r
}

// stop ends the work, with a goodbye to the relay.
func (r *demoRun) stop() {
	if r == nil {
		return
	}
	r.cancel()
	<-r.done
}

// demoBackoff is short, so that the demo is.
var demoBackoff = skaldclient.Backoff{Min: 50 * time.Millisecond, Max: time.Second, Jitter: 0.25}

// demoPhone is a phone with its network.
type demoPhone struct {
	name   string
	token  string // for pushes
	client *skaldclient.Client
	events *demoEvents
	net    *network
	run    *demoRun
}

func newDemoPhone(name string, r *demoRelay, dial skaldclient.DialOptions) (*demoPhone, error) {
	n, err := newNetwork(r.addr)
	if err != nil {
		return nil, err
	}
	p := &demoPhone{name: name, token: "push-token-of-" + name, events: newDemoEvents(), net: n}
	dial.DialContext = n.dial
	p.client, err = skaldclient.NewClient(skaldclient.ClientConfig{
		Config: skaldclient.Config{
			Store:   &skaldclient.MemoryStore{},
			OnEvent: p.events.take,
			Dial:    dial,
			Backoff: demoBackoff,
		},
		Platform:    skaldclient.PlatformAndroid,
		DeviceToken: p.token,
	})
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return p, nil
}

func (p *demoPhone) key() skaldclient.PublicKey { return p.client.Identity().PublicKey() }

// online opens the app: the phone connects, and waits until it is.
func (p *demoPhone) online(ctx context.Context) error {
	p.run = startRun(p.client.Run)
	_, err := awaitEvent[skaldclient.Connected](ctx, p.events, "a connection of "+p.name, nil)
	return err
}

// offline closes the app.
func (p *demoPhone) offline() {
	p.run.stop()
	p.run = nil
}

// close ends the phone and its network. It may be called again.
func (p *demoPhone) close() error {
	if p == nil {
		return nil
	}
	p.offline()
	return p.net.close()
}

// readMessage waits for the next message and compares it with what was sent.
func (q *demoEvents) readMessage(ctx context.Context, from skaldclient.PublicKey, want skaldclient.Payload) (skaldclient.Message, error) {
	m, err := awaitEvent[skaldclient.Message](ctx, q, "the message", nil)
	switch {
	case err != nil:
		return m, err
	case m.From != from:
		return m, errors.New("it comes from another sender")
	case m.Payload.ID != want.ID:
		return m, errors.New("another message came")
	case m.Payload.Kind != want.Kind || m.Payload.TS != want.TS || !bytes.Equal(m.Payload.Body, want.Body):
		return m, errors.New("it is not what was sent")
	}
	return m, nil
}
