package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"blindpost/shared/proof/bench"
)

// benchRow is a line of the table.
type benchRow struct {
	key    bench.Key
	text   string
	format func(float64) string
}

// benchRows are the lines of the table, in order. A line whose number was not measured
// is left out.
func benchRows(c bench.Config, r bench.Report) []benchRow {
	latency := func(k bench.LiveKeys, what string) string {
		return fmt.Sprintf("  latency at %s/s, %s", commas(r[k.LatencyRate]), what)
	}
	live := func(pairs int, k bench.LiveKeys) []benchRow {
		return []benchRow{
			{k.Rate, fmt.Sprintf("live messages/s, %s pairs", commas(float64(pairs))), commas},
			{k.CPU, "  processor time of the relay for one", benchMicros},
			{k.P50, latency(k, "median"), benchMillis},
			{k.P99, latency(k, "99 of 100"), benchMillis},
			{k.Most, latency(k, "longest"), benchMillis},
		}
	}
	snapshots := func(size int) string {
		return fmt.Sprintf("Aelos snapshots/s of one boat, %s bytes, each to %d viewers", commas(float64(size)), c.Viewers)
	}
	idle := fmt.Sprintf("bytes per idle connection, %s of them, ", commas(float64(c.Idle)))
	rows := append(live(c.FewPairs, bench.LiveFew), live(c.ManyPairs, bench.LiveMany)...)
	return append(rows, []benchRow{
		{bench.StoredRate, fmt.Sprintf("stored messages/s, durable, to %s clients offline", commas(float64(c.Senders))), commas},
		{bench.StoredCPU, "  processor time of the relay for one", benchMicros},
		{bench.DrainRate, fmt.Sprintf("drained messages/s, %s of them, confirmed", commas(r[bench.DrainMessages])), commas},
		{bench.DrainCPU, "  processor time of the relay for one", benchMicros},
		{bench.Exchanges.Rate, fmt.Sprintf("Agentknock exchanges/s, whole and durable, of %s clients", commas(float64(c.Askers))), commas},
		{bench.Exchanges.CPU, "  processor time of the relay for one", benchMicros},
		{bench.Exchanges.P50, latency(bench.Exchanges, "median"), benchMillis},
		{bench.Exchanges.P99, latency(bench.Exchanges, "99 of 100"), benchMillis},
		{bench.Exchanges.Most, latency(bench.Exchanges, "longest"), benchMillis},
		{bench.AelosSmall.Rate, snapshots(c.SmallSnapshot), commas},
		{bench.AelosSmall.CPU, "  processor time of the relay for one copy", benchMicros},
		{bench.AelosLarge.Rate, snapshots(c.LargeSnapshot), commas},
		{bench.AelosLarge.CPU, "  processor time of the relay for one copy", benchMicros},
		{bench.AelosFleet.CPU, fmt.Sprintf("Aelos, %s boats with a viewer each, once a second: relay, of one processor", commas(float64(c.Boats))), benchPercent},
		{bench.AelosFleet.P50, "  latency, median", benchMillis},
		{bench.AelosFleet.P99, "  latency, 99 of 100", benchMillis},
		{bench.AelosFleet.Most, "  latency, longest", benchMillis},
		{bench.AuthPlain.Rate, "connections + authentications/s, without TLS", commas},
		{bench.AuthPlain.CPU, "  processor time of the relay for one", benchMicros},
		{bench.AuthTLS.Rate, "connections + authentications/s, TLS", commas},
		{bench.AuthTLS.CPU, "  processor time of the relay for one", benchMicros},
		{bench.IdlePlain.Resident, idle + "behind a TLS proxy", commas},
		{bench.IdlePlain.Anonymous, "  without mapped files", commas},
		{bench.IdleTLS.Resident, idle + "TLS ended here", commas},
		{bench.IdleTLS.Anonymous, "  without mapped files", commas},
	}...)
}

// printBenchTable prints the table for people.
func printBenchTable(w io.Writer, m benchMachine, c bench.Config, r bench.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Blindpost %s, %s, %s/%s, %d processors, %s\n", m.Version, m.Go, m.OS, m.Arch, m.CPUs, m.Date)
	fmt.Fprintf(&b, "Each part has a relay of its own, in another process, over loopback, with TLS unless\n"+
		"stated otherwise, and without limits; the load generator shares the processors.\n"+
		"Live and stored messages have %d bytes of ciphertext. Latency is counted from when a\n"+
		"message was due; messages are due at random times, %d of one pair at once, at %.0f %% of the\n"+
		"throughput, but at no more than %s/s. The agents that authenticate are known to the\n"+
		"relay and begin with a full handshake; each idle agent has a namespace of its own.\n"+
		"An Agentknock exchange is three messages of that size, each stored, acknowledged,\n"+
		"delivered, and acknowledged again. What Aelos boats publish is sealed for each viewer\n"+
		"and opened there, which the generator pays for.\n", c.MessageBytes, c.Burst, c.LatencyShare*100, commas(c.LatencyRate))
	if m.InMemory {
		fmt.Fprint(&b, "The database was in memory: what is called durable here is not. Use --dir.\n")
	}
	b.WriteByte('\n')
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range benchRows(c, r) {
		v, ok := r[row.key]
		if !ok {
			continue
		}
		fmt.Fprintf(t, "%s\t%14s%s\n", row.text, row.format(v), goalText(row, v))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("failed to print the table: %w", err)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("failed to print the table: %w", err)
	}
	return nil
}

// goalText compares a number with its goal, if it has one.
func goalText(row benchRow, v float64) string {
	g, ok := bench.Goals[row.key]
	if !ok {
		return ""
	}
	word, than := "met", "least"
	if !g.Met(v) {
		word = "MISSED"
	}
	if g.Most {
		than = "most"
	}
	return fmt.Sprintf("  goal: at %s %s: %s", than, strings.TrimSpace(row.format(g.Value)), word)
}

// commas prints a whole number with commas.
func commas(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

func benchMillis(v float64) string  { return fmt.Sprintf("%.2f ms", v) }
func benchPercent(v float64) string { return fmt.Sprintf("%.1f %%", v) }
func benchMicros(v float64) string  { return fmt.Sprintf("%.1f us", v) }
