package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config says what is measured, and for how long.
type Config struct {
	// Only are the parts to run; all if it is empty. See [Parts].
	Only []string
	// FewPairs and ManyPairs are the numbers of pairs that send live messages.
	FewPairs, ManyPairs int
	// Senders is how many agents write stored messages, each to a client of its
	// own.
	Senders int
	// Askers is how many Agentknock clients have an exchange open at a time.
	Askers int
	// Agents is how many agents connect in one round of the authentication part.
	Agents int
	// Idle is how many connections are idle.
	Idle int
	// Boats is how many Aelos boats publish once a second, each to one viewer;
	// Viewers is how many watch the one boat that publishes as fast as it can.
	Boats, Viewers int
	// SmallSnapshot and LargeSnapshot are the sizes of what Aelos boats publish, in
	// bytes before it is sealed.
	SmallSnapshot, LargeSnapshot int
	// MessageBytes is the size of a ciphertext.
	MessageBytes int
	// Burst is how many messages one pair sends at a time while latency is
	// measured.
	Burst int
	// LatencyRate is the load in messages per second at which latency is
	// measured, unless LatencyShare of the throughput that was reached is less.
	LatencyRate, LatencyShare float64
	// Warmup and Measure are how long each measurement takes.
	Warmup, Measure time.Duration
	// Patience is how long a relay may take to fall quiet before its memory is
	// measured.
	Patience time.Duration
	// Progress, if set, hears what is being done.
	Progress func(string)
}

// Default measures for about three minutes.
func Default() Config {
	return Config{
		FewPairs: 64, ManyPairs: 1000, Senders: 512, Askers: 256, Agents: 1000, Idle: 5000,
		Boats: 1000, Viewers: 8, SmallSnapshot: 1 << 10, LargeSnapshot: 32 << 10,
		MessageBytes: 256, Burst: 4, LatencyRate: 50_000, LatencyShare: 0.8,
		Warmup: 2 * time.Second, Measure: 10 * time.Second, Patience: 20 * time.Second,
	}
}

// Short is Default in less than a minute.
func Short() Config {
	c := Default()
	c.Warmup, c.Measure, c.Patience = 500*time.Millisecond, 2*time.Second, 3*time.Second
	return c
}

// Check reports what is wrong with a configuration.
func (c Config) Check() error {
	for name, n := range map[string]int{
		"pairs": min(c.FewPairs, c.ManyPairs), "senders": c.Senders, "asking clients": c.Askers, "agents": c.Agents,
		"idle connections": c.Idle, "messages in a burst": c.Burst, "boats": c.Boats, "viewers": c.Viewers,
	} {
		if n < 1 {
			return fmt.Errorf("the number of %s must be 1 or more", name)
		}
	}
	switch {
	case c.MessageBytes < stampSize || c.MessageBytes > 32<<10:
		return fmt.Errorf("the size of a message must be from %d bytes to 32 KiB", stampSize)
	case min(c.SmallSnapshot, c.LargeSnapshot) < stampSize || max(c.SmallSnapshot, c.LargeSnapshot) > 60<<10:
		return fmt.Errorf("the size of a snapshot must be from %d bytes to 60 KiB", stampSize)
	case c.Measure < time.Millisecond || c.Warmup < 0 || c.Patience < 0:
		return errors.New("the time to measure must be positive")
	case !(c.LatencyRate > 0) || !(c.LatencyShare > 0 && c.LatencyShare <= 1):
		return errors.New("the load to measure latency at must be positive")
	}
	_, err := c.parts()
	return err
}

// Launcher starts a relay with an empty database and its limits lifted. If plain,
// it is reached as by a proxy that has ended TLS.
type Launcher func(ctx context.Context, plain bool) (Relay, error)

// part is what runs against one relay.
type part struct {
	name  string
	plain bool
	about string
	conns func(Config) int // how many connections it opens at most
	run   func(*partRun) error
}

func allParts() []part {
	return []part{
		{"live-few", false, "live messages, few pairs",
			func(c Config) int { return 2 * c.FewPairs },
			func(s *partRun) error { return s.live(s.cfg.FewPairs, LiveFew) }},
		{"live-many", false, "live messages, many pairs",
			func(c Config) int { return 2 * c.ManyPairs },
			func(s *partRun) error { return s.live(s.cfg.ManyPairs, LiveMany) }},
		{"stored", false, "stored messages, then the drain",
			func(c Config) int { return 2 * c.Senders },
			(*partRun).stored},
		{"exchanges", false, "Agentknock exchanges, from request to the receipt of the completion",
			func(c Config) int { return 3 * c.Askers },
			(*partRun).exchanges},
		{"auth-plain", true, "connections and authentications, without TLS",
			func(c Config) int { return c.Agents },
			func(s *partRun) error { return s.auth(AuthPlain) }},
		{"auth-tls", false, "connections and authentications, with TLS",
			func(c Config) int { return c.Agents },
			func(s *partRun) error { return s.auth(AuthTLS) }},
		{"idle-plain", true, "memory of idle connections, without TLS",
			func(c Config) int { return c.Idle },
			func(s *partRun) error { return s.idle(IdlePlain) }},
		{"idle-tls", false, "memory of idle connections, with TLS",
			func(c Config) int { return c.Idle },
			func(s *partRun) error { return s.idle(IdleTLS) }},
		{"aelos-small", false, "small snapshots of one Aelos boat",
			func(c Config) int { return 1 + c.Viewers },
			func(s *partRun) error { return s.broadcast(s.cfg.SmallSnapshot, AelosSmall) }},
		{"aelos-large", false, "large snapshots of one Aelos boat",
			func(c Config) int { return 1 + c.Viewers },
			func(s *partRun) error { return s.broadcast(s.cfg.LargeSnapshot, AelosLarge) }},
		{"aelos-fleet", false, "many Aelos boats, once a second",
			func(c Config) int { return 2 * c.Boats },
			(*partRun).cruise},
	}
}

// Parts are the names of the parts. Their first words name all that begin so.
func Parts() []string {
	var names []string
	for _, p := range allParts() {
		names = append(names, p.name)
	}
	return names
}

func (c Config) parts() ([]part, error) {
	all := allParts()
	if len(c.Only) == 0 {
		return all, nil
	}
	wanted := make([]bool, len(all))
	for _, name := range c.Only {
		found := false
		for i, p := range all {
			kind, _, _ := strings.Cut(p.name, "-")
			if p.name == name || kind == name || (p.name == "stored" && name == "drain") {
				wanted[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no part %q, only %s", name, strings.Join(Parts(), ", "))
		}
	}
	i := -1
	return slices.DeleteFunc(all, func(part) bool { i++; return !wanted[i] }), nil
}

// Connections is how many connections are open at a time at most.
func (c Config) Connections() (most int) {
	parts, err := c.parts()
	if err != nil {
		return 0
	}
	for _, p := range parts {
		most = max(most, p.conns(c)+rush) // those that are still pairing
	}
	return most
}

// partRun is one part on its relay.
type partRun struct {
	cfg   Config
	name  string
	relay Relay
	fleet *fleet
	out   Report
}

// Run measures, each part against a relay that is started for it, and returns
// what it has measured. The first part that fails ends it.
func Run(ctx context.Context, cfg Config, launch Launcher) (Report, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	parts, err := cfg.parts()
	if err != nil {
		return nil, err
	}
	out := Report{}
	for _, p := range parts {
		if cfg.Progress != nil {
			cfg.Progress(p.about)
		}
		err := runPart(ctx, cfg, p, launch, out)
		if errors.Is(err, errNoUsage) && len(cfg.Only) == 0 {
			continue // not asked for by name, and not to be had here
		}
		if err != nil {
			return out, fmt.Errorf("failed to measure %s: %w", p.about, err)
		}
	}
	return out, nil
}

func runPart(ctx context.Context, cfg Config, p part, launch Launcher, out Report) (err error) {
	relay, err := launch(ctx, p.plain)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, relay.Stop()) }()
	f := newFleet(ctx, relay.Target())
	defer f.end()
	return p.run(&partRun{cfg: cfg, name: p.name, relay: relay, fleet: f, out: out})
}

func (s *partRun) live(pairs int, keys LiveKeys) error {
	r, err := openLive(s.fleet, pairs, s.cfg.MessageBytes)
	if err != nil {
		return err
	}
	n, l, err := r.throughput(s.relay, s.name+"-rate", s.cfg.Warmup, s.cfg.Measure)
	if err != nil {
		return err
	}
	reached := l.perSecond(n)
	s.out[keys.Rate] = reached
	s.out.cpuPer(keys.CPU, l, n)
	rate := min(s.cfg.LatencyRate, s.cfg.LatencyShare*reached)
	h, err := r.latency(s.relay, s.name+"-latency", rate, s.cfg.Burst, s.cfg.Warmup, s.cfg.Measure)
	if err != nil {
		return err
	}
	s.out[keys.LatencyRate] = rate
	s.out.latency(keys.P50, keys.P99, keys.Most, &h)
	return nil
}

func (s *partRun) stored() error {
	r, err := openStored(s.fleet, s.cfg.Senders, s.cfg.MessageBytes)
	if err != nil {
		return err
	}
	n, l, err := r.throughput(s.relay, "stored", s.cfg.Warmup, s.cfg.Measure)
	if err != nil {
		return err
	}
	s.out[StoredRate] = l.perSecond(n)
	s.out.cpuPer(StoredCPU, l, n)
	n, l, err = r.drain(s.relay, "drain")
	if err != nil {
		return err
	}
	s.out[DrainRate] = l.perSecond(n)
	s.out[DrainMessages] = float64(n)
	s.out.cpuPer(DrainCPU, l, n)
	return nil
}

func (s *partRun) exchanges() error {
	r, err := openKnocks(s.fleet, s.cfg.Askers, s.cfg.MessageBytes)
	if err != nil {
		return s.fleet.because(err)
	}
	n, l, err := r.throughput(s.relay, "exchanges-rate", s.cfg.Warmup, s.cfg.Measure)
	if err != nil {
		return err
	}
	reached := l.perSecond(n)
	s.out[Exchanges.Rate] = reached
	s.out.cpuPer(Exchanges.CPU, l, n)
	rate := s.cfg.LatencyShare * reached
	h, err := r.latency(s.relay, "exchanges-latency", rate, s.cfg.Warmup, s.cfg.Measure)
	if err != nil {
		return err
	}
	s.out[Exchanges.LatencyRate] = rate
	s.out.latency(Exchanges.P50, Exchanges.P99, Exchanges.Most, &h)
	return nil
}

func (s *partRun) auth(keys AuthKeys) error {
	n, l, err := s.fleet.authRate(s.relay, s.name, s.cfg.Agents, s.cfg.Measure)
	if err != nil {
		return err
	}
	s.out[keys.Rate] = l.perSecond(n)
	s.out.cpuPer(keys.CPU, l, n)
	return nil
}

func (s *partRun) idle(keys IdleKeys) error {
	r, err := s.fleet.idle(s.relay, s.name, s.cfg.Idle, s.cfg.Patience)
	if err != nil {
		return err
	}
	s.out[keys.Resident] = r.resident
	s.out[keys.Anonymous] = r.anonymous
	return nil
}
