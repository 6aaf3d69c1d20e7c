package metrics

import (
	"bufio"
	"errors"
	"maps"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/server"
	"blindpost/shared/push"
	"blindpost/shared/queue/local"
	"blindpost/shared/relay"
)

var (
	_ server.Observer = Front{}
	_ local.Observer  = (*Metrics)(nil)
)

// scrape returns what a scrape answers: series to value.
func scrape(t testing.TB, m *Metrics) map[string]float64 {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("scrape answers %d: %s", rec.Code, rec.Body)
	}
	got := map[string]float64{}
	for lines := bufio.NewScanner(rec.Body); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		got[line[:cut]] = v
	}
	return got
}

// changed returns which of our series do not have the value that they had, with
// the difference; buckets are left out.
func changed(before, after map[string]float64) map[string]float64 {
	diff := map[string]float64{}
	for k, v := range after {
		if strings.HasPrefix(k, "blindpost_") && !strings.Contains(k, "_bucket{") && v != before[k] {
			diff[k] = v - before[k]
		}
	}
	return diff
}

func TestEveryMethodMovesItsSeries(t *testing.T) {
	m := New(Options{})
	front, core := m.Front("skald"), m.Relay()
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	tests := []struct {
		name string
		do   func()
		want map[string]float64
	}{
		{"frames of two dialects", func() { front.FrameIn(100); front.FrameIn(23); m.Front("aelos").FrameOut(7) },
			map[string]float64{`frames_received_total{dialect="skald"}`: 2, `frame_bytes_received_total{dialect="skald"}`: 123,
				`frames_sent_total{dialect="aelos"}`: 1, `frame_bytes_sent_total{dialect="aelos"}`: 7}},
		{"a kind of another dialect", func() { core.Frame("aelos", "authorize", ms(500)) },
			map[string]float64{`frame_handling_seconds_count{dialect="aelos",kind="other"}`: 1, `frame_handling_seconds_sum{dialect="aelos",kind="other"}`: .5}},
		{"a live message", func() { core.Message(relay.ClassLive, relay.PeerOffline) },
			map[string]float64{`messages_total{class="live",outcome="peer_offline"}`: 1}},
		{"mailbox", func() { m.MailboxTotal(40); core.Depth(7) },
			map[string]float64{`mailbox_messages`: 41, `mailbox_depth_count`: 1, `mailbox_depth_sum`: 7}},
		{"job", func() { m.JobRun("push", 1, ms(250), false) },
			map[string]float64{`job_attempts_total{kind="push",result="ok"}`: 1, `job_seconds_count{kind="push"}`: 1, `job_seconds_sum{kind="push"}`: .25}},
		{"failed job", func() { m.JobPanic("push"); m.JobRun("push", 6, 0, true); m.JobDead("push") },
			map[string]float64{`job_attempts_total{kind="push",result="failed"}`: 1, `job_seconds_count{kind="push"}`: 1, `jobs_dead_total{kind="push"}`: 1,
				`handler_errors_total{event="job"}`: 1, `handler_panics_total{event="job"}`: 1}},
		{"table", func() { m.TableOperation("write", "condition", ms(500)) },
			map[string]float64{`table_operations_total{operation="write",result="condition"}`: 1,
				`table_operation_seconds_count{operation="write"}`: 1, `table_operation_seconds_sum{operation="write"}`: .5}},
		{"negative counts", func() { core.Dropped(relay.ClassLive, "expired", -1); core.Confirmed(-1); front.FrameOut(-1) },
			map[string]float64{`frames_sent_total{dialect="skald"}`: 1, `mailbox_messages`: 1}},

		{"front opens", func() { front.Opened(); front.Opened() },
			map[string]float64{`sockets`: 2, `connects_accepted_total`: 2}},
		{"front closes", func() { front.Closed(gateway.CloseGoingAway); front.Closed(3999) },
			map[string]float64{`sockets`: -2, `closes_total{code="1001"}`: 1, `closes_total{code="other"}`: 1}},
		{"front refuses", func() { front.Refused(426); front.Refused(418) },
			map[string]float64{`upgrades_refused_total{status="426"}`: 1, `upgrades_refused_total{status="other"}`: 1}},
		{"front carries", func() { front.FrameIn(5); front.FrameOut(6) },
			map[string]float64{`frames_received_total{dialect="skald"}`: 1, `frame_bytes_received_total{dialect="skald"}`: 5,
				`frames_sent_total{dialect="skald"}`: 1, `frame_bytes_sent_total{dialect="skald"}`: 6}},
		{"front of many dialects", func() { m.Front("").FrameIn(5) },
			map[string]float64{`frames_received_total{dialect="other"}`: 1, `frame_bytes_received_total{dialect="other"}`: 5}},
		{"front waits", func() {
			front.Buffered(100)
			front.Buffered(-40)
			front.SlowReader()
			front.Panicked()
			front.Failed("confirmed")
		},
			map[string]float64{`send_buffer_bytes`: 60, `slow_readers_total`: 1, `handler_panics_total{event="front"}`: 1, `handler_errors_total{event="confirmed"}`: 1}},
		{"front confirms", func() { front.Confirmed(3, ms(250)) },
			map[string]float64{`delivery_confirm_seconds_count`: 1, `delivery_confirm_seconds_sum`: .25}},

		{"core counts", func() { core.Refused("skald", "dialect"); core.Authenticated("skald", "pairing", "pairing_closed") },
			map[string]float64{`connects_refused_total{dialect="skald",reason="dialect"}`: 1,
				`authentications_total{dialect="skald",result="pairing_closed",role="pairing"}`: 1}},
		{"core presence", func() { core.Joined("skald", "agent"); core.Joined("skald", "agent"); core.Left("skald", "agent") },
			map[string]float64{`connections{dialect="skald",role="agent"}`: 1}},
		{"core frame", func() { core.Frame("skald", "authorize", ms(500)) },
			map[string]float64{`frame_handling_seconds_count{dialect="skald",kind="authorize"}`: 1, `frame_handling_seconds_sum{dialect="skald",kind="authorize"}`: .5}},
		{"core message", func() { core.Message(relay.ClassStored, relay.Stored); core.Depth(4) },
			map[string]float64{`messages_total{class="stored",outcome="stored"}`: 1, `mailbox_messages`: 1, `mailbox_depth_count`: 1, `mailbox_depth_sum`: 4}},
		{"core drops from the mailbox", func() { core.Dropped(relay.ClassStored, "revoked", 5) },
			map[string]float64{`messages_dropped_total{class="stored",reason="revoked"}`: 5, `mailbox_messages`: -5}},
		{"core drops before the mailbox", func() { core.Dropped(relay.ClassStored, "too_large", 1) },
			map[string]float64{`messages_dropped_total{class="stored",reason="too_large"}`: 1}},
		{"core drops a live message", func() { core.Dropped(relay.ClassLive, "connection_lost", 1) },
			map[string]float64{`messages_dropped_total{class="live",reason="connection_lost"}`: 1}},
		{"core confirms", func() { core.Confirmed(2) },
			map[string]float64{`messages_confirmed_total`: 2, `mailbox_messages`: -2}},
		{"core pushes", func() {
			core.Pushed(push.Notification{Platform: push.IOS, Kind: push.Content}, nil)
			core.Pushed(push.Notification{Platform: push.Android, Kind: push.Wake}, errors.Join(push.ErrTokenGone))
			core.Pushed(push.Notification{}, errors.New("timeout"))
		}, map[string]float64{`pushes_total{kind="content",platform="ios",result="ok"}`: 1,
			`pushes_total{kind="wake",platform="android",result="token_gone"}`: 1,
			`pushes_total{kind="other",platform="other",result="failed"}`:      1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := scrape(t, m)
			tt.do()
			want := map[string]float64{}
			for k, v := range tt.want {
				want["blindpost_"+k] = v
			}
			if got := changed(before, scrape(t, m)); !maps.Equal(got, want) {
				t.Errorf("moved %v\nwant  %v", got, want)
			}
		})
	}
}

// The names that the relay uses now must not end up as "other".
func TestNamesOfTheRelayAreKnown(t *testing.T) {
	for _, r := range []relay.Result{relay.Delivered, relay.Stored, relay.Queued, relay.PeerOffline, relay.QueueFull, relay.NotFound, relay.TooLarge, relay.Stale} {
		if outcomes.values[outcomes.of(string(r))] != string(r) {
			t.Errorf("outcome %q is not known", r)
		}
	}
	for _, c := range []relay.Class{relay.ClassStored, relay.ClassLive} {
		if classes.values[classes.of(string(c))] != string(c) {
			t.Errorf("class %q is not known", c)
		}
	}
}

func TestOptionsNameWhatIsServed(t *testing.T) {
	m := New(Options{
		Version: "v1.2.3", Revision: "abc", Dialects: []string{"skald"},
		JobKinds: []string{"report", "push"}, FrameKinds: map[string][]string{"skald": {"pipe", "message"}, "none": {"x"}},
	})
	m.JobRun("report", 1, 0, false)
	m.Relay().Frame("skald", "pipe", 0)
	m.Front("aelos").FrameIn(1)
	got := scrape(t, m)
	for _, series := range []string{
		`blindpost_job_attempts_total{kind="report",result="ok"}`,
		`blindpost_frame_handling_seconds_count{dialect="skald",kind="pipe"}`,
		`blindpost_frames_received_total{dialect="other"}`,
	} {
		if got[series] != 1 {
			t.Errorf("%s is %v", series, got[series])
		}
	}
	var build string
	for k := range got {
		if strings.HasPrefix(k, "blindpost_build_info{") {
			build = k
		}
		if strings.Contains(k, "aelos") {
			t.Errorf("%s: a dialect that is not served has series", k)
		}
	}
	for _, want := range []string{`version="v1.2.3"`, `revision="abc"`, `goversion="go1.`} {
		if !strings.Contains(build, want) {
			t.Errorf("build info is %s", build)
		}
	}
	for _, series := range []string{"go_goroutines", "process_start_time_seconds", "process_resident_memory_bytes"} {
		if got[series] == 0 {
			t.Errorf("no %s", series)
		}
	}
}

// Whatever the callers say, no series is added and every event is counted.
func TestNoCallerAddsASeries(t *testing.T) {
	m := New(Options{})
	names := slices.Sorted(maps.Keys(scrape(t, m)))
	rapid.Check(t, func(t *rapid.T) {
		word := func() string {
			return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"skald", "agent", "ok", "other", "", "message", "live"})).Draw(t, "word")
		}
		number := rapid.Int().Draw(t, "number")
		front, core := m.Front(word()), m.Relay()
		core.Authenticated(word(), word(), word())
		core.Joined(word(), word())
		core.Left(word(), word())
		core.Refused(word(), word())
		front.Refused(number)
		front.Closed(gateway.CloseCode(number))
		front.FrameIn(number)
		front.FrameOut(number)
		front.Failed(word())
		core.Frame(word(), word(), time.Duration(number))
		core.Message(relay.Class(word()), relay.Result(word()))
		core.Dropped(relay.Class(word()), word(), number)
		core.Pushed(push.Notification{Platform: push.Platform(number), Kind: push.Kind(number)}, nil)
		m.JobRun(word(), number, time.Duration(number), number%2 == 0)
		m.JobDead(word())
		m.TableOperation(word(), word(), time.Duration(number))
	})
	after := scrape(t, m)
	if got := slices.Sorted(maps.Keys(after)); !slices.Equal(got, names) {
		t.Errorf("%d series have become %d", len(names), len(got))
	}
	t.Logf("%d series", len(names))
	var authentications, runs float64
	for k, v := range after {
		if strings.HasPrefix(k, "blindpost_authentications_total{") {
			authentications += v
		}
		if strings.HasPrefix(k, "blindpost_job_attempts_total{") {
			runs += v
		}
	}
	if authentications == 0 || authentications != runs {
		t.Errorf("%v authentications and %v jobs were counted, one each per round", authentications, runs)
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	problems, err := testutil.GatherAndLint(New(Options{}).registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "blindpost_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestSetsAreClosed(t *testing.T) {
	s := newSet("b", "other", "a", "b", "")
	if !slices.Equal(s.values, []string{"b", "a", "other"}) {
		t.Errorf("values are %v", s.values)
	}
	for v, want := range map[string]int{"b": 0, "a": 1, "other": 2, "": 2, "c": 2} {
		if got := s.of(v); got != want {
			t.Errorf("%q is at %d, want %d", v, got, want)
		}
	}
}
