package stories

import (
	"bufio"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"blindpost/shared/metrics"
	"blindpost/shared/proof/bubble"
	"blindpost/shared/standalone"
	"blindpost/shared/table"
)

// After a crash the connections of before are history: nobody is online who is
// not, and the first to come back is news.
func TestCrash_StaleConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(2)
		a, b := h.phones[0], h.phones[1]
		a.connect()
		b.connect()
		agent.askPresenceIs(t, h.agent, a, b)
		w.Crash()
		w.Open()

		agent = h.agent.connect()
		agent.askPresenceIs(t, h.agent)
		live := w.parcel(10)
		live.live = true
		agent.post(a, live)
		agent.wantPeerOffline(a)
		w.Pushes.Take()
		stored := w.parcel(10)
		agent.post(a, stored)
		if got := w.Pushes.Take(); len(got) != 1 || got[0].Token != a.token {
			t.Errorf("%d pushes, want one", len(got))
		}

		p := a.connect()
		agent.wantOnline(a)
		p.wantMessages(h.agent, stored)
		q := b.connect()
		agent.wantOnline(b)
		p.wantOnline(b)
		q.wantNothing()
		agent.askPresenceIs(t, h.agent, a, b)
		w.Sleep(time.Hour)
		agent.wantNothing()
		p.wantNothing()
		q.close()
		agent.wantOffline(b)
		p.wantOffline(b)
	})
}

func (p *peer) askPresenceIs(t *testing.T, want ...*member) {
	t.Helper()
	for p.next() != nil { // whatever came before
	}
	online := p.askPresence()
	if len(online) != len(want) {
		t.Errorf("%d are online, want %d", len(online), len(want))
	}
	for _, m := range want {
		if !online[string(m.key)] {
			t.Errorf("%s is not online", m.name)
		}
	}
}

// After a crash each phone with something in its mailbox is woken once more, as
// its push may have been lost; after a good end nobody is.
func TestCrash_WakesOnceMore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(5)
		waiting, busy, empty, noToken, connected := h.phones[0], h.phones[1], h.phones[2], h.phones[3], h.phones[4]
		noToken.token = ""
		noToken.connect().close()
		for _, m := range []*member{waiting, busy, noToken} {
			for _, p := range w.parcels(3, 10) {
				agent.post(m, p)
			}
		}
		b := busy.connect(line{mode: deaf}) // has them, says nothing
		p := connected.connect()
		agent.post(connected, w.parcel(10)) // confirmed
		b.want("a message")
		p.want("a message")
		_ = empty
		w.Pushes.Take()

		wakes := func() map[string]int {
			got := map[string]int{}
			for _, s := range w.Pushes.Take() {
				got[s.Token]++
			}
			return got
		}
		for range 2 { // a process that crashes before it has done anything changes nothing
			w.Crash()
			if got := wakes(); len(got) != 0 {
				t.Errorf("pushes of a process that is dead: %d", len(got))
			}
			w.Open()
			if got := wakes(); len(got) != 2 || got[waiting.token] != 1 || got[busy.token] != 1 {
				t.Errorf("%d phones were woken, want the two with messages, once each", len(got))
			}
			w.Sleep(time.Hour)
			if got := wakes(); len(got) != 0 {
				t.Errorf("%d phones were woken later", len(got))
			}
		}
		w.Restart()
		w.Sleep(time.Hour)
		if got := wakes(); got[waiting.token] != 0 || got[noToken.token] != 0 {
			t.Error("a phone was woken after a good end")
		}
		waiting.connect().want("a message")
		busy.connect().want("a message")
		w.Crash()
		w.Open()
		if got := wakes(); len(got) != 0 {
			t.Errorf("%d phones were woken though nothing waits for them", len(got))
		}
	})
}

// What a phone has not confirmed when the relay crashes it gets again, what it
// has confirmed it does not; in order, and with what came later.
func TestCrash_InTheMiddleOfADrain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		ms := w.parcels(50, 60_000)
		for _, m := range ms {
			agent.post(h.phones[0], m)
		}
		phone := h.phones[0].connect(line{pace: pace{64 << 10, time.Second}})
		agent.wantOnline(h.phones[0])
		w.Sleep(25 * time.Second)
		live := w.parcel(10)
		live.live = true
		agent.post(h.phones[0], live) // waits its turn, in vain
		m := w.parcel(10)
		agent.post(h.phones[0], m)
		ms = append(ms, m)
		w.Crash()
		<-phone.done
		seen := 0
		for a := phone.next(); a != nil; a = phone.next() {
			if find(ms, a.frame.GetMessage().GetCiphertext()) != seen {
				t.Fatalf("message %d is not in its place", seen)
			}
			seen++
		}
		if seen == 0 || seen == len(ms) {
			t.Fatalf("%d messages before the crash: not in the middle", seen)
		}

		w.Open()
		phone = h.phones[0].connect()
		first := find(ms, phone.want("a message").GetMessage().GetCiphertext())
		if first <= 0 || first > seen {
			t.Errorf("the first message after the crash is number %d, %d were seen", first, seen)
		}
		phone.wantMessages(h.agent, ms[first+1:]...)
		phone.wantNothing()
		if n := w.lane(h.phones[0]); n != 0 {
			t.Errorf("%d entries are left in the mailbox", n)
		}
	})
}

// lane counts what is in the mailbox of a member.
func (w *world) lane(m *member) int {
	w.T.Helper()
	member, err := w.Node.Relay.GetMember(w.T.Context(), "skald/"+m.h.ns.Hex(), m.PublicKey().Hex())
	if err != nil || member == nil {
		w.T.Fatalf("no member: %v", err)
	}
	items, err := table.QueryAll(w.T.Context(), w.Node.Database(), table.Query{Partition: "l/" + member.Lane})
	if err != nil {
		w.T.Fatal(err)
	}
	return len(items)
}

// The gauge of waiting messages starts with what is there, and goes on from it.
func TestCrash_MailboxGauge(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		check := func(want float64) {
			t.Helper()
			w.Settle()
			if got := gauge(t, w.Cfg.Metrics, "blindpost_mailbox_messages"); got != want {
				t.Errorf("the gauge says %v, want %v", got, want)
			}
		}
		start := func() {
			w.Cfg.Metrics = metrics.New(metrics.Options{})
			w.Open()
		}
		check(0)
		h, agent := w.homeWith(2)
		for _, m := range w.parcels(5, 10) {
			agent.post(h.phones[0], m)
		}
		for _, m := range w.parcels(3, 10) {
			agent.post(h.phones[1], m)
		}
		check(8)
		w.Crash()
		start()
		check(8)
		h.phones[0].connect()
		check(3)
		w.Shutdown(0)
		start()
		check(3)
		agent = h.agent.connect()
		h.phones = h.phones[:1]
		h.authorize(agent) // the other one is revoked
		check(0)
		agent.post(h.phones[0], w.parcel(10))
		check(1)
		w.Crash()
		start()
		check(1)
		h.phones[0].connect()
		check(0)
	}, func(c *standalone.Config) { c.Metrics = metrics.New(metrics.Options{}) })
}

func gauge(t *testing.T, m *metrics.Metrics, name string) float64 {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for lines := bufio.NewScanner(rec.Body); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// runningKey is the item of a process that runs.
var runningKey = table.Key{Partition: "process", Sort: "running"}

// The item that says that a process is running is there while one is, and after
// one that did not end well.
func TestCrash_RunningItem(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		running := func(want bool) {
			t.Helper()
			_, err := w.Node.Database().Get(t.Context(), runningKey)
			if got := err == nil; got != want {
				t.Errorf("running is %v, want %v", got, want)
			}
		}
		complains := func(want bool) {
			t.Helper()
			if got := strings.Contains(string(w.Log.Bytes()), "did not shut down cleanly"); got != want {
				t.Errorf("the log says %v about the process before, want %v", got, want)
			}
		}
		running(true)
		w.Restart()
		running(true)
		complains(false)

		// A second process on the same file does no harm.
		if _, err := standalone.Open(w.Cfg); err == nil {
			t.Fatal("a second process has opened the file")
		}
		running(true)
		w.Shutdown(0)
		if keys := w.Stored(); len(keys) != 0 {
			t.Errorf("%d items are left", len(keys))
		}
		w.Open()
		complains(false)
		w.Crash()
		if keys := w.Stored(); len(keys) != 1 || keys[0] != runningKey.Partition+" "+runningKey.Sort {
			t.Errorf("%d items are left, want the one that says running", len(keys))
		}
		w.Open()
		complains(true)
		running(true)
	})
}

// A crash neither makes a namespace live for ever nor shortens its life: the time
// without a connection begins with the crash.
func TestCrash_NamespaceStillExpires(t *testing.T) {
	for _, c := range []struct {
		at   time.Duration
		want bool
	}{{7*bubble.Day - time.Second, true}, {7*bubble.Day + 2*time.Minute, false}} {
		t.Run(fmt.Sprint(c.at), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h, agent := w.homeWith(1)
				h.phones[0].connect()
				agent.wantOnline(h.phones[0])
				w.Sleep(time.Hour)
				w.Crash()
				w.Open()
				w.Sleep(c.at)
				if c.want {
					h.phones[0].connect()
				} else {
					h.phones[0].try().wantRefusal("not_found")
				}
			})
		})
	}
}
