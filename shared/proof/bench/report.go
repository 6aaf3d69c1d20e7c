package bench

import "time"

// Report is what was measured, by key. What was not measured is not in it.
type Report map[Key]float64

// Key names a number. Its unit is in its name.
type Key string

// LiveKeys are the numbers of live messages. CPU is what the relay spends on one.
type LiveKeys struct{ Rate, LatencyRate, P50, P99, Most, CPU Key }

// AuthKeys are the numbers of connections and authentications.
type AuthKeys struct{ Rate, CPU Key }

// AelosKeys are the numbers of one boat that publishes to some viewers. Rate counts
// snapshots, each of which goes to every viewer; CPU is what the relay spends on
// one copy.
type AelosKeys struct{ Rate, CPU Key }

// FleetKeys are the numbers of boats that publish once a second. CPU is the share
// of one processor that the relay uses, in percent.
type FleetKeys struct{ P50, P99, Most, CPU Key }

// IdleKeys are the numbers of idle connections. Anonymous leaves out files that
// are mapped into memory, such as the database.
type IdleKeys struct{ Resident, Anonymous Key }

// The keys. The numbers in their names are those of [Default].
var (
	LiveFew = LiveKeys{
		"live_msgs_per_s_64", "live_latency_load_msgs_per_s_64", "live_p50_ms_64", "live_p99_ms_64", "live_max_ms_64",
		"live_relay_cpu_us_per_msg_64",
	}
	LiveMany = LiveKeys{
		"live_msgs_per_s_1000", "live_latency_load_msgs_per_s_1000", "live_p50_ms_1000", "live_p99_ms_1000", "live_max_ms_1000",
		"live_relay_cpu_us_per_msg_1000",
	}
	// Exchanges are those of Agentknock, whole and durable.
	Exchanges = LiveKeys{
		"agentknock_exchanges_per_s", "agentknock_latency_load_exchanges_per_s", "agentknock_p50_ms", "agentknock_p99_ms", "agentknock_max_ms",
		"agentknock_relay_cpu_us_per_exchange",
	}
	AuthPlain = AuthKeys{"auth_per_s", "auth_relay_cpu_us"}
	AuthTLS   = AuthKeys{"auth_tls_per_s", "auth_tls_relay_cpu_us"}
	IdlePlain = IdleKeys{"idle_bytes_plain", "idle_anonymous_bytes_plain"}
	IdleTLS   = IdleKeys{"idle_bytes_tls", "idle_anonymous_bytes_tls"}

	AelosSmall = AelosKeys{"aelos_snapshots_per_s_1k", "aelos_relay_cpu_us_per_copy_1k"}
	AelosLarge = AelosKeys{"aelos_snapshots_per_s_32k", "aelos_relay_cpu_us_per_copy_32k"}
	AelosFleet = FleetKeys{
		"aelos_p50_ms_1000_boats", "aelos_p99_ms_1000_boats", "aelos_max_ms_1000_boats", "aelos_relay_cpu_percent_1000_boats",
	}
)

// Keys of stored messages.
const (
	StoredRate    Key = "stored_msgs_per_s"
	StoredCPU     Key = "stored_relay_cpu_us_per_msg"
	DrainRate     Key = "drain_msgs_per_s"
	DrainMessages Key = "drain_msgs"
	DrainCPU      Key = "drain_relay_cpu_us_per_msg"
)

// Goal is what we want a number to be.
type Goal struct {
	Value float64
	// Most says that the number should not be more than Value; otherwise not
	// less.
	Most bool
}

// Met reports whether a number is as it should be.
func (g Goal) Met(v float64) bool {
	if g.Most {
		return v <= g.Value
	}
	return v >= g.Value
}

// Goals are for two processors with the load generator beside the relay.
var Goals = map[Key]Goal{
	LiveFew.Rate:       {50_000, false},
	LiveFew.P99:        {10, true},
	StoredRate:         {10_000, false},
	AuthPlain.Rate:     {5_000, false},
	IdlePlain.Resident: {10_000, true},
	IdleTLS.Resident:   {30_000, true},
}

// cpuPer notes what the relay spent on each of n things, where that is known.
func (r Report) cpuPer(k Key, l lap, n uint64) {
	if l.cpu > 0 && n > 0 {
		r[k] = float64(l.cpu.Microseconds()) / float64(n)
	}
}

// latency notes how long things took.
func (r Report) latency(p50, p99, most Key, h *histogram) {
	r[p50], r[p99], r[most] = milliseconds(h.quantile(0.5)), milliseconds(h.quantile(0.99)), milliseconds(h.most)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
