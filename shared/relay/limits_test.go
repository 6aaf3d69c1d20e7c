package relay

import (
	"net/netip"
	"testing"
	"time"

	"blindpost/shared/table"
)

func TestAddressKey(t *testing.T) {
	for _, c := range []struct{ ip, want string }{
		{"192.0.2.1", "192.0.2.1"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
		{"::ffff:192.0.2.1%eth0", "192.0.2.1"},
		{"2001:db8:1:2::1", "2001:db8:1:2::/64"},
		{"2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"},
		{"2001:db8:1:3::1", "2001:db8:1:3::/64"},
		{"fe80::1%eth0", "fe80::/64"},
		{"fe80::1%another zone", "fe80::/64"},
		{"::1", "::/64"},
	} {
		key := AddressKey(netip.MustParseAddr(c.ip))
		if key != c.want {
			t.Errorf("%s is limited by %q, want %q", c.ip, key, c.want)
		}
		if err := (table.Key{Partition: AddressPartition + key, Sort: "n"}).Validate(); err != nil {
			t.Errorf("%s makes no key: %v", c.ip, err)
		}
	}
	// A transport without an address has one counter for all.
	if err := (table.Key{Partition: AddressPartition + AddressKey(netip.Addr{}), Sort: "n"}).Validate(); err != nil {
		t.Errorf("no address makes no key: %v", err)
	}
}

func TestWindow(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, time.UTC)
	type event struct {
		at    time.Duration
		limit int64
		want  bool
	}
	for _, c := range []struct {
		name   string
		events []event
	}{
		{"the limit and no more", []event{{0, 2, true}, {0, 2, true}, {0, 2, false}, {time.Second, 2, false}}},
		{"the window begins with its first event", []event{
			{40 * time.Second, 1, true}, {99 * time.Second, 1, false}, {100 * time.Second, 1, true}, {159 * time.Second, 1, false}, {160 * time.Second, 1, true},
		}},
		{"to the millisecond", []event{{0, 1, true}, {time.Minute - time.Millisecond, 1, false}, {time.Minute, 1, true}}},
		{"what is refused is not counted", []event{{0, 1, true}, {time.Second, 1, false}, {time.Second, 2, true}, {time.Second, 2, false}}},
		{"a lower limit holds at once", []event{{0, 9, true}, {0, 9, true}, {0, 1, false}, {0, 3, true}}},
		{"a clock that is set back starts again", []event{{time.Hour, 1, true}, {time.Hour, 1, false}, {0, 1, true}, {0, 1, false}}},
		{"a limit of none", []event{{0, 0, false}, {time.Hour, 0, false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w rateWindow
			for i, e := range c.events {
				if got := w.take(start.Add(e.at), e.limit); got != e.want {
					t.Errorf("event %d at %v: %v, want %v", i, e.at, got, e.want)
				}
				// It is the same after a stay in the table, which keeps milliseconds.
				a := table.Attrs{}
				w.put(a, "w", "n")
				w = windowFrom(a, "w", "n")
			}
		})
	}
}
