package costrun

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sk "blindpost/shared/client/skald"
	"blindpost/shared/proof/apigwtest"
	"blindpost/shared/proof/cost"
)

// The day of a household. Stored adds up to 200 and live to 2,000.
const (
	phones   = 2
	sessions = 10 // of each phone, spread over 15 hours
	// Before a session the phone sleeps, and is sent so many messages, each with a push.
	asleep = 6
	// In a session the phone asks so often, and gets so many answers to each, all live.
	questions = 20
	answers   = 4
	// And so many stored messages go each way.
	both = 2

	storedBytes = 500 // of the payload, before it is encrypted
	liveBytes   = 300
)

const (
	firstSession  = 8 * time.Hour
	betweenPhones = 42 * time.Minute
	betweenEach   = 84 * time.Minute
	sleepBefore   = 20 * time.Minute
	betweenAsks   = 36 * time.Second
	betweenAnswer = 500 * time.Millisecond
	// The acts of a household do not happen at the moments of the clock, as that would
	// take a second process each time, or none, by chance.
	besideClock = 37 * time.Second
	// No two households do the same at the same moment.
	betweenHomes = 197*time.Second + 300*time.Millisecond
)

// Stored, live and session minutes of a day.
const (
	storedADay = phones * sessions * (asleep + 2*both)
	liveADay   = phones * sessions * questions * (1 + answers)
)

// day describes it in words.
func day() []string {
	session := questions * betweenAsks
	return []string{
		fmt.Sprintf("an agent that is always connected, and %d phones that are opened %d times a day each, for %.0f minutes", phones, sessions, session.Minutes()),
		fmt.Sprintf("%d stored messages of %d bytes: %d to each phone while it sleeps, with a push each, and %d each way while it is open, each time",
			storedADay, storedBytes, asleep, both),
		fmt.Sprintf("%d live messages of %d bytes: while it is open, a phone asks every %.0f seconds and gets %d answers, half a second apart",
			liveADay, liveBytes, betweenAsks.Seconds(), answers),
		fmt.Sprintf("API Gateway ends each connection after %.0f hours, and the agent connects again", maxAge.Hours()),
		"the clock calls the sweeper every minute",
	}
}

// Day runs a day with a number of households and returns what it took.
func Day(t *testing.T, households int, connectionAge time.Duration) (use cost.Use) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, connectionAge)
		var homes []*home
		for range households {
			homes = append(homes, s.newHome())
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(2*time.Hour + besideClock)))
		begin := time.Now()
		before := s.read()
		var wg sync.WaitGroup
		for n, h := range homes {
			for i := range h.phones {
				wg.Go(func() { h.phoneDay(i, begin.Add(time.Duration(n)*betweenHomes)) })
			}
		}
		wg.Wait()
		time.Sleep(time.Until(begin.Add(24 * time.Hour)))
		use = s.read().since(before)
		for _, h := range homes {
			h.check()
			h.end()
		}
		time.Sleep(time.Minute) // what the end of the connections brings about
		if worst := s.log.worst(); worst != "" {
			t.Errorf("logged: %s", worst)
		}
		if dead := append(s.server.Dead(s.jobs), s.server.Dead(s.ingress)...); len(dead) > 0 {
			t.Errorf("dead letters: %v", dead)
		}
	})
	return use
}

// home is a household.
type home struct {
	t      *testing.T
	agent  *sk.Agent
	phones []*sk.Client
	ended  chan error
	stop   context.CancelFunc
	once   sync.Once

	stored, live atomic.Int64 // that have come
}

func (s *stage) newHome() *home {
	ctx, cancel := context.WithCancel(context.Background())
	h := &home{t: s.t, ended: make(chan error, 1), stop: cancel}
	transport := s.api.Client().Transport.(*http.Transport)
	config := func() sk.Config {
		return sk.Config{
			Store: &sk.MemoryStore{}, OnEvent: h.hear,
			Dial: sk.DialOptions{TLSConfig: cloneTLS(transport.TLSClientConfig), DialContext: transport.DialContext},
		}
	}
	url := s.api.URL() + "/" + apigwtest.Stage
	var err error
	h.agent, err = sk.NewAgent(sk.AgentConfig{Config: config(), URL: url, Policy: sk.AutoApprove})
	if err != nil {
		s.t.Fatal(err)
	}
	go func() { h.ended <- h.agent.Run(ctx) }()
	s.t.Cleanup(h.end)
	early, give := context.WithTimeout(ctx, 2*time.Minute) // in a bubble nothing else ends the wait
	defer give()
	if err := h.agent.WaitConnected(early); err != nil {
		s.t.Fatalf("the agent does not connect: %v; logged: %s", err, s.log.worst())
	}
	for i := range phones {
		c, err := sk.NewClient(sk.ClientConfig{Config: config(), URL: url, DeviceToken: fmt.Sprintf("token-of-%p-%d", h, i)})
		if err != nil {
			s.t.Fatal(err)
		}
		pairing, err := h.agent.StartPairing(early, time.Minute)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := c.Pair(early, pairing.QR); err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(30 * time.Second) // the agent authorises it
		h.phones = append(h.phones, c)
	}
	return h
}

func cloneTLS(c *tls.Config) *tls.Config { return c.Clone() }

func (h *home) hear(_ context.Context, e sk.Event) {
	switch e := e.(type) {
	case sk.Message:
		if e.Live {
			h.live.Add(1)
		} else {
			h.stored.Add(1)
		}
	case sk.Fault:
		h.t.Errorf("the relay says %v", e.Err)
	}
}

// phoneDay is the day of one phone, and of the agent as far as it talks to that one.
func (h *home) phoneDay(i int, begin time.Time) {
	phone := h.phones[i]
	for n := range sessions {
		opens := begin.Add(firstSession + time.Duration(n)*betweenEach + time.Duration(i)*betweenPhones)
		time.Sleep(time.Until(opens.Add(-sleepBefore)))
		for range asleep {
			h.tell(phone, storedBytes, false)
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Until(opens))
		ctx, closeApp := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- phone.Run(ctx) }()
		early, give := context.WithTimeout(ctx, time.Minute)
		if err := phone.WaitConnected(early); err != nil {
			h.t.Errorf("a phone does not connect: %v", err)
		}
		give()
		for q := range questions {
			ask := time.Now()
			h.ask(phone, liveBytes, true)
			time.Sleep(betweenAnswer)
			for range answers {
				h.tell(phone, liveBytes, true)
				time.Sleep(betweenAnswer)
			}
			if q < both {
				h.ask(phone, storedBytes, false)
				h.tell(phone, storedBytes, false)
			}
			time.Sleep(time.Until(ask.Add(betweenAsks)))
		}
		closeApp()
		if err := <-ended; err != nil {
			h.t.Errorf("a phone ended: %v", err)
		}
	}
}

// tell has the agent send, ask the phone. A peer that is just connecting sends afterwards.
func (h *home) tell(phone *sk.Client, size int, live bool) {
	h.send(h.agent.WaitConnected, func(ctx context.Context) error {
		p, err := h.agent.NewPayload(sk.KindInboxUpdate, filled(size))
		if err != nil {
			return err
		}
		return h.agent.Send(ctx, phone.Identity().PublicKey(), p, live)
	})
}

func (h *home) ask(phone *sk.Client, size int, live bool) {
	h.send(phone.WaitConnected, func(ctx context.Context) error {
		p, err := phone.NewPayload(sk.KindInboxRequest, filled(size))
		if err != nil {
			return err
		}
		return phone.Send(ctx, p, live)
	})
}

func (h *home) send(connected, send func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := send(ctx)
		if err == nil {
			return
		}
		if !errors.Is(err, sk.ErrNotConnected) {
			h.t.Errorf("failed to send: %v", err)
			return
		}
		time.Sleep(time.Second) // a connection that has broken counts as one a little longer
		if err := connected(ctx); err != nil {
			h.t.Errorf("failed to send: %v", err)
			return
		}
	}
}

// filled is a body that makes a payload of so many bytes.
func filled(size int) map[string]string {
	const around = 110 // version, kind, id, time, name and quotes
	return map[string]string{"text": strings.Repeat("x", size-around)}
}

// check expects that the messages have come, so that real work was counted. A message
// that is written while API Gateway ends a connection may be lost.
func (h *home) check() {
	stored, live := h.stored.Load(), h.live.Load()
	if stored < storedADay*99/100 || stored > storedADay || live < liveADay*99/100 || live > liveADay {
		h.t.Errorf("%d of %d stored and %d of %d live messages have come", stored, storedADay, live, liveADay)
	}
}

// end is called once more when the test has ended.
func (h *home) end() {
	h.stop()
	h.once.Do(func() {
		if err := <-h.ended; err != nil {
			h.t.Errorf("the agent ended: %v", err)
		}
	})
}
