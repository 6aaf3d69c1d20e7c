package stories

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	wire "blindpost/shared/client/aelos"
	"blindpost/shared/standalone"
)

const simSecret = "the-minter-of-the-simulation-shares-this-with-the-relay"

// Boats and viewers that do what they like, several at a time: come, take over,
// leave, break off, vanish, let their tokens run out; and the relay is restarted and
// killed under them. Whenever the dust has settled, everybody knows what is so,
// and sessions carry what they should, to whom they should. SEED plays one again.
func TestAelosSimulation(t *testing.T) {
	seeds, first := 8, 1
	if testing.Short() {
		seeds = 3
	}
	if s := os.Getenv("SEED"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("SEED: %v", err)
		}
		seeds, first = 1, n
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) { newSea(w, uint64(seed)).play() }, func(cfg *standalone.Config) {
				cfg.Limits.Relay.ConnectionsPerIP = 0
				cfg.Limits.Aelos.Leeway = 0
				cfg.Aelos.Secrets = func(context.Context) ([]string, error) { return []string{simSecret}, nil }
			})
		})
	}
}

// sea is a simulation.
type sea struct {
	w     *world
	r     *mathrand.Rand
	boats []*simBoat
	round int
}

func newSea(w *world, seed uint64) *sea {
	s := &sea{w: w, r: mathrand.New(mathrand.NewPCG(seed, 7))}
	// Two organisations with a boat of the same id, and an old boat.
	s.boats = []*simBoat{w.simBoat("north", "bianca", 2, 11), w.simBoat("south", "bianca", 2, 4), w.simBoat("south", "albatross", 1, 3)}
	return s
}

const simRounds = 40

func (s *sea) play() {
	defer s.end()
	for s.round = range simRounds {
		s.act()
		s.settleSea()
		s.check()
		if s.w.T.Failed() {
			return
		}
	}
}

func (s *sea) end() {
	for _, e := range s.ends() {
		if l := e.latest(); l != nil {
			l.pipe.vanished.Store(false)
			l.Abort()
			<-l.done
		}
	}
}

func (s *sea) ends() (all []*simEnd) {
	for _, b := range s.boats {
		all = append(all, &b.simEnd)
		for _, v := range b.viewers {
			all = append(all, &v.simEnd)
		}
	}
	return all
}

// act does something, or several things at once.
func (s *sea) act() {
	if s.r.IntN(20) == 0 {
		if s.r.IntN(2) == 0 {
			s.w.Restart()
		} else {
			s.w.Crash()
			for _, e := range s.ends() { // their transport is gone with the process
				if l := e.latest(); l != nil {
					l.Abort()
				}
			}
			s.w.Open()
		}
		return
	}
	var acts []func()
	busy := map[*simEnd]bool{}
	for range 1 + s.r.IntN(6) {
		b := s.boats[min(s.r.IntN(5), s.r.IntN(len(s.boats)))] // the first one most
		if s.r.IntN(4) == 0 {
			if !busy[&b.simEnd] {
				busy[&b.simEnd] = true
				acts = append(acts, s.boatAct(b))
			}
			continue
		}
		if v := b.viewers[s.r.IntN(len(b.viewers))]; !busy[&v.simEnd] {
			busy[&v.simEnd] = true
			acts = append(acts, s.viewerAct(v))
		}
	}
	var wg sync.WaitGroup
	for _, act := range acts {
		wg.Go(act)
	}
	wg.Wait()
}

// boatAct connects the boat, perhaps over a connection that it has, or ends one.
func (s *sea) boatAct(b *simBoat) func() {
	if b.up() && s.r.IntN(2) == 0 {
		return s.ending(&b.simEnd)
	}
	expires := s.expiry()
	token := s.mint(wire.BoatClaims(b.org, b.id, expires))
	from := s.address()
	return func() {
		old := b.latest()
		if err := b.dial(func() wire.Message { return b.end.Hello(token) }, from, expires); err != nil {
			s.w.T.Errorf("%s: %v", b.name, err)
		}
		if old != nil {
			old.pipe.vanished.Store(true) // nobody listens there any more
		}
	}
}

func (s *sea) viewerAct(v *simViewer) func() {
	if v.up() {
		if s.r.IntN(3) > 0 { // who watches, goes on for a while: boats fill up
			return func() {}
		}
		return s.ending(&v.simEnd)
	}
	expires := s.expiry()
	claims := wire.ViewerClaims(v.boat.org, v.user, v.boat.id, expires)
	if v.ctl {
		claims = wire.ControllerClaims(v.boat.org, v.user, v.boat.id, expires)
	}
	token := s.mint(claims)
	from := s.address()
	return func() {
		v.online = nil
		if err := v.dial(func() wire.Message { return v.end.Hello(token) }, from, expires); err != nil {
			s.w.T.Errorf("%s: %v", v.name, err)
		}
	}
}

func (s *sea) ending(e *simEnd) func() {
	return []func(){e.leave, e.drop, e.vanish}[s.r.IntN(3)]
}

// expiry is the end of a token: some run out while the simulation runs.
func (s *sea) expiry() time.Time {
	life := []time.Duration{10 * time.Minute, 24 * time.Hour, 24 * time.Hour, 24 * time.Hour}[s.r.IntN(4)]
	return time.Now().Add(life).Truncate(time.Second)
}

func (s *sea) address() string { return fmt.Sprintf("198.18.%d.%d", s.r.IntN(250), 1+s.r.IntN(250)) }

func (s *sea) mint(c wire.Claims) string {
	token, err := wire.Mint([]byte(simSecret), c)
	if err != nil {
		s.w.T.Error(err)
	}
	s.w.Secret([]byte(token))
	return token
}

// settleSea waits until the relay has noticed who has vanished, and now and then
// much longer. It does not stop where a token is about to run out.
func (s *sea) settleSea() {
	s.w.Sleep(4 * time.Minute)
	if s.r.IntN(8) == 0 {
		s.w.Sleep(time.Duration(1+s.r.IntN(90)) * time.Minute)
	}
	for again := true; again; {
		again = false
		for _, e := range s.ends() {
			if l := e.latest(); l != nil {
				if left := time.Until(l.expires); left > -2*time.Second && left < 2*time.Second {
					s.w.Sleep(5 * time.Second)
					again = true
				}
			}
		}
	}
}
