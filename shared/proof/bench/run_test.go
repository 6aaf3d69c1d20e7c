package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"blindpost/shared/standalone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// localRelay is a whole relay in this process.
type localRelay struct {
	node   *standalone.Node
	target Target
	served chan error

	mu       sync.Mutex
	measured []string
	usage    func() (Usage, bool)
	stopped  bool
}

var _ Relay = (*localRelay)(nil)

func (r *localRelay) Target() Target { return r.target }

func (r *localRelay) Usage() (Usage, bool) {
	if r.usage == nil {
		return Usage{}, false
	}
	return r.usage()
}

func (r *localRelay) Measuring(what string, _ time.Duration) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.measured = append(r.measured, what)
	return func() {}
}

func (r *localRelay) Stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return errors.New("stopped twice")
	}
	r.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(r.node.Shutdown(ctx, 0), <-r.served)
}

// house launches relays and remembers them.
type house struct {
	t      *testing.T
	limits func(*standalone.Limits)
	usage  func() (Usage, bool)
	relays []*localRelay
}

func (h *house) launch(ctx context.Context, plain bool) (Relay, error) {
	cfg := standalone.Config{DataDir: h.t.TempDir(), Limits: standalone.DefaultLimits()}
	l := &cfg.Limits.Relay
	l.MailboxCap, l.ConnectionsPerIP, l.MessagesPerMinute, l.ControlPerMinute = 0, 0, 0, 0
	a := &cfg.Limits.Agentknock
	a.ClientExchangesPerMinute, a.DeviceExchangesPerMinute, a.ClientOpenExchanges, a.DeviceOpenExchanges, a.FramesPerMinute = 0, 0, 0, 0, 0
	b := &cfg.Limits.Aelos
	b.BoatFrames, b.ViewerFrames, b.Commands, b.CommandBytes, b.Handshakes = 0, 0, 0, 0, 0
	const secret = "the-minter-of-tokens-shares-this-with-the-relay"
	cfg.Aelos.Secrets = func(context.Context) ([]string, error) { return []string{secret}, nil }
	if h.limits != nil {
		h.limits(&cfg.Limits)
	}
	r := &localRelay{served: make(chan error, 1), usage: h.usage}
	r.target.AelosSecret = []byte(secret)
	if plain {
		cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	} else {
		s := httptest.NewTLSServer(nil) // for its certificate
		s.Close()
		cfg.TLS = &tls.Config{Certificates: s.TLS.Certificates}
		r.target.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		r.target.TLS.ServerName = "example.com"
	}
	var err error
	if r.node, err = standalone.Open(cfg); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, r.node.Shutdown(ctx, 0))
	}
	r.target.Addr, r.target.Host = listener.Addr().String(), "localhost"
	go func() { r.served <- r.node.Serve(context.WithoutCancel(ctx), listener) }()
	h.relays = append(h.relays, r)
	return r, nil
}

// tiny takes no time; its numbers mean nothing.
func tiny() Config {
	c := Default()
	c.FewPairs, c.ManyPairs, c.Senders, c.Askers, c.Agents, c.Idle = 4, 6, 3, 6, 5, 7
	c.Boats, c.Viewers = 60, 3 // of the boats, a fifth has its moment within the time
	c.LatencyRate = 2000
	c.Warmup, c.Measure, c.Patience = 20*time.Millisecond, 200*time.Millisecond, 0
	return c
}

// counting is a process that grows with every look at it.
func counting() func() (Usage, bool) {
	var n int64
	return func() (Usage, bool) {
		n++
		return Usage{Resident: n * 7000, Anonymous: n * 700, CPU: time.Duration(n) * time.Second}, true
	}
}

// Everything is measured, against a relay that is real but for its process.
func TestRunMeasuresAll(t *testing.T) {
	h := &house{t: t, usage: counting()}
	cfg := tiny()
	var progress []string
	cfg.Progress = func(s string) { progress = append(progress, s) }
	report, err := Run(t.Context(), cfg, h.launch)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []Key{
		"live_msgs_per_s_64", "live_p99_ms_64", "live_msgs_per_s_1000", "live_p99_ms_1000",
		"stored_msgs_per_s", "drain_msgs_per_s", "auth_per_s", "auth_tls_per_s", "idle_bytes_plain", "idle_bytes_tls",
		"agentknock_exchanges_per_s", "agentknock_p50_ms", "agentknock_p99_ms", "agentknock_relay_cpu_us_per_exchange",
		"aelos_snapshots_per_s_1k", "aelos_snapshots_per_s_32k", "aelos_relay_cpu_us_per_copy_1k", "aelos_relay_cpu_us_per_copy_32k",
		"aelos_p50_ms_1000_boats", "aelos_p99_ms_1000_boats", "aelos_max_ms_1000_boats", "aelos_relay_cpu_percent_1000_boats",
		"live_p50_ms_64", "live_relay_cpu_us_per_msg_1000", "idle_anonymous_bytes_tls", "drain_msgs",
	} {
		if report[k] <= 0 {
			t.Errorf("%s is %v, want more than 0", k, report[k])
		}
	}
	for _, k := range []LiveKeys{LiveFew, LiveMany, Exchanges} {
		if report[k.P50] > report[k.P99] || report[k.P99] > report[k.Most] {
			t.Errorf("latencies are out of order: %v, %v, %v", report[k.P50], report[k.P99], report[k.Most])
		}
		if report[k.LatencyRate] > min(cfg.LatencyRate, cfg.LatencyShare*report[k.Rate]) {
			t.Errorf("latency was measured at %v/s of %v/s", report[k.LatencyRate], report[k.Rate])
		}
	}
	if got := int(report[DrainMessages]) % storedBatch; got != 0 {
		t.Errorf("%v messages were drained, which are no whole batches", report[DrainMessages])
	}
	if len(progress) != len(Parts()) || len(h.relays) != len(Parts()) {
		t.Errorf("%d parts, %d relays, %d words of progress", len(Parts()), len(h.relays), len(progress))
	}
	var measured []string
	for _, r := range h.relays {
		if !r.stopped {
			t.Error("a relay was not stopped")
		}
		measured = append(measured, r.measured...)
	}
	want := []string{"live-few-rate", "live-few-latency", "live-many-rate", "live-many-latency", "stored", "drain", "exchanges-rate", "exchanges-latency",
		"auth-plain", "auth-tls", "idle-plain", "idle-tls", "aelos-small", "aelos-large", "aelos-fleet"}
	if !slices.Equal(measured, want) {
		t.Errorf("measured %v, want %v", measured, want)
	}
}

func TestRunMeasuresOnlyWhatIsWanted(t *testing.T) {
	for _, c := range []struct {
		only  []string
		plain []string // of the parts
	}{
		{[]string{"auth"}, []string{"auth-plain", "auth-tls"}},
		{[]string{"aelos"}, []string{"aelos-small", "aelos-large", "aelos-fleet"}},
		{[]string{"idle-tls", "live-few"}, []string{"live-few", "idle-tls"}},
		{[]string{"drain"}, []string{"stored"}},
		{[]string{"live", "stored", "drain"}, []string{"live-few", "live-many", "stored"}},
	} {
		cfg := tiny()
		cfg.Only = c.only
		parts, err := cfg.parts()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range parts {
			got = append(got, p.name)
		}
		if !slices.Equal(got, c.plain) {
			t.Errorf("only %v: got %v, want %v", c.only, got, c.plain)
		}
	}
	cfg := tiny()
	cfg.Only = []string{"live-few"}
	report, err := Run(t.Context(), cfg, (&house{t: t}).launch)
	if err != nil {
		t.Fatal(err)
	}
	if len(report) != 5 || report[LiveFew.Rate] == 0 { // no processor time: this relay does not tell
		t.Errorf("got %v", report)
	}
}

// Memory that cannot be known is left out, unless it was asked for.
func TestRunWithoutUsage(t *testing.T) {
	cfg := tiny()
	report, err := Run(t.Context(), cfg, (&house{t: t}).launch)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := report[IdlePlain.Resident]; ok || report[AuthTLS.Rate] == 0 {
		t.Errorf("got %v", report)
	}
	cfg.Only = []string{"idle-plain"}
	if _, err := Run(t.Context(), cfg, (&house{t: t}).launch); !errors.Is(err, errNoUsage) {
		t.Errorf("got %v", err)
	}
}

// A relay that refuses is no relay to measure: the code of its refusal is in the
// error, and nothing hangs.
func TestRunFailsWithTheRelay(t *testing.T) {
	for _, c := range []struct {
		only   string
		limits func(*standalone.Limits)
		want   string
	}{
		{"live-few", func(l *standalone.Limits) { l.Relay.MessagesPerMinute = 40 }, "rate_limited"},
		{"live-few", func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 9 }, "429"},
		{"live-few", func(l *standalone.Limits) { l.Skald.MaxLiveFrame = 100; l.Skald.MaxFrame = 1000 }, "payload_too_large"},
		{"stored", func(l *standalone.Limits) { l.Relay.MailboxCap = 5 }, "queue_full"},
		{"exchanges", func(l *standalone.Limits) { l.Agentknock.ClientExchangesPerMinute = 1 }, "RATE_LIMITED"},
		{"exchanges", func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 9 }, "429"},
		// One for each that may be the first to be refused: a call, a device, a client.
		{"exchanges", func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 1 }, "429"},
		{"exchanges", func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 2 }, "429"},
		{"exchanges", func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 3 }, "429"},
		{"exchanges", func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 4 }, "429"},
		{"aelos-small", func(l *standalone.Limits) { l.Aelos.MaxViewers = 2 }, "limit"},
		{"aelos-large", func(l *standalone.Limits) { l.Aelos.MaxFrame = 20 << 10 }, "limit"},
		{"aelos-fleet", func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 9 }, "429"},
		{"auth-plain", func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 9 }, "429"},
		{"idle-tls", func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 2 }, "429"},
	} {
		t.Run(c.only+" "+c.want, func(t *testing.T) {
			t.Parallel()
			cfg := tiny()
			cfg.Only = []string{c.only}
			h := &house{t: t, limits: c.limits, usage: counting()}
			_, err := Run(t.Context(), cfg, h.launch)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// When the context ends, so does the measurement, and the relay with it.
func TestRunEndsWithItsContext(t *testing.T) {
	for _, only := range Parts() {
		t.Run(only, func(t *testing.T) {
			t.Parallel() // it mostly waits
			ctx, cancel := context.WithCancel(t.Context())
			cfg := tiny()
			cfg.Only, cfg.Warmup, cfg.Measure, cfg.Patience = []string{only}, time.Hour, time.Hour, time.Hour
			cfg.Idle = 2
			h := &house{t: t}
			looks := counting()
			h.usage = func() (Usage, bool) { // memory that never comes to rest
				u, ok := looks()
				if u.Resident > 3*7000 {
					cancel()
				}
				return u, ok
			}
			if !strings.HasPrefix(only, "idle") && !strings.HasPrefix(only, "auth") {
				time.AfterFunc(300*time.Millisecond, cancel)
			}
			_, err := Run(ctx, cfg, h.launch)
			cancel()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if len(h.relays) != 1 || !h.relays[0].stopped {
				t.Error("the relay was not stopped")
			}
		})
	}
}

func TestRunStopsWhenNoRelayStarts(t *testing.T) {
	sorry := errors.New("sorry")
	_, err := Run(t.Context(), tiny(), func(context.Context, bool) (Relay, error) { return nil, sorry })
	if !errors.Is(err, sorry) {
		t.Errorf("got %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"default", func(*Config) {}, ""},
		{"short", func(c *Config) { *c = Short() }, ""},
		{"no pairs", func(c *Config) { c.ManyPairs = 0 }, "pairs"},
		{"no senders", func(c *Config) { c.Senders = 0 }, "senders"},
		{"no burst", func(c *Config) { c.Burst = 0 }, "burst"},
		{"tiny message", func(c *Config) { c.MessageBytes = 15 }, "16 bytes"},
		{"large message", func(c *Config) { c.MessageBytes = 1 << 20 }, "32 KiB"},
		{"no boats", func(c *Config) { c.Boats = 0 }, "boats"},
		{"large snapshot", func(c *Config) { c.LargeSnapshot = 1 << 20 }, "60 KiB"},
		{"no time", func(c *Config) { c.Measure = 0 }, "time"},
		{"no load", func(c *Config) { c.LatencyRate = 0 }, "load"},
		{"too much load", func(c *Config) { c.LatencyShare = 1.1 }, "load"},
		{"a part that is not", func(c *Config) { c.Only = []string{"idle", "dead"} }, `"dead"`},
		{"half a name", func(c *Config) { c.Only = []string{"live-"} }, `"live-"`},
	} {
		cfg := Default()
		c.change(&cfg)
		err := cfg.Check()
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestConnections(t *testing.T) {
	c := Default()
	if got := c.Connections(); got < c.Idle {
		t.Errorf("all parts: %d", got)
	}
	c.Only = []string{"stored"}
	if got := c.Connections(); got < 2*c.Senders || got >= c.Idle {
		t.Errorf("stored: %d", got)
	}
}

func TestGoals(t *testing.T) {
	for _, c := range []struct {
		key  Key
		v    float64
		want bool
	}{
		{LiveFew.Rate, 50_000, true}, {LiveFew.Rate, 49_999, false},
		{LiveFew.P99, 9.9, true}, {LiveFew.P99, 10.1, false},
		{IdleTLS.Resident, 30_000, true}, {IdleTLS.Resident, 30_001, false},
	} {
		if got := Goals[c.key].Met(c.v); got != c.want {
			t.Errorf("%s of %v: met is %v", c.key, c.v, got)
		}
	}
	if len(Goals) != 6 {
		t.Errorf("%d goals", len(Goals))
	}
}
