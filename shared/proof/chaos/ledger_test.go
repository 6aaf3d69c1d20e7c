package chaos

import (
	"strings"
	"testing"
)

// What the ledger calls a fault, and what it does not.
func TestLedger(t *testing.T) {
	const from, to = 1, 2
	stored := func(n uint32) letter { return letter{from: from, to: to, n: n} }
	live := func(n uint32) letter { return letter{from: from, to: to, n: n, live: true} }
	cases := []struct {
		name string
		tell func(b *ledger) // after 1, 2 and 4 were written as stored and 3 as live
		want string          // in the only fault; none if empty
	}{
		{"all is well", func(b *ledger) {
			b.accept(stored(1), stored(2))
			b.arrive(1, stored(1))
			b.arrive(1, stored(2))
			b.arrive(1, live(3))
		}, ""},
		{"what was accepted is lost", func(b *ledger) {
			b.accept(stored(1), stored(2))
			b.arrive(1, stored(1))
		}, "stored message 2 from 1 to 2 was accepted and is lost"},
		{"what was not accepted may be lost", func(b *ledger) { b.arrive(1, stored(2)) }, ""},
		{"what was not accepted may arrive", func(b *ledger) { b.arrive(1, stored(1)) }, ""},
		{"unconfirmed, it may come again on the next connection", func(b *ledger) {
			b.arrive(1, stored(1))
			b.arrive(1, stored(2))
			b.arrive(2, stored(1))
			b.arrive(2, stored(2))
		}, ""},
		{"but not on the same", func(b *ledger) {
			b.arrive(1, stored(1))
			b.arrive(1, stored(1))
		}, "comes after number 1 on one connection"},
		{"nor when it was confirmed", func(b *ledger) {
			b.arrive(1, stored(1))
			b.confirm(stored(1))
			b.arrive(2, stored(1))
		}, "although it was confirmed"},
		{"a live one comes once", func(b *ledger) {
			b.arrive(1, live(3))
			b.arrive(2, live(3))
		}, "comes twice"},
		{"a later one overtakes", func(b *ledger) {
			b.arrive(1, stored(2))
			b.arrive(2, stored(1))
		}, "comes after number 2 was read"},
		{"a live one overtakes", func(b *ledger) {
			b.arrive(1, live(3))
			b.arrive(2, stored(2))
		}, "comes after number 3 was read"},
		{"order holds among repetitions too", func(b *ledger) {
			b.arrive(1, stored(1))
			b.arrive(1, stored(2))
			b.arrive(2, stored(2))
			b.arrive(2, stored(1))
		}, "stored message 1 from 1 to 2 comes after number 2 on one connection"},
		{"nobody sent it", func(b *ledger) { b.arrive(1, stored(5)) }, "was never sent"},
		{"nobody sent it here", func(b *ledger) { b.arrive(1, letter{from: 2, to: 1, n: 1}) }, "was never sent"},
		{"number 0 does not exist", func(b *ledger) { b.arrive(1, stored(0)) }, "was never sent"},
		{"the class has changed", func(b *ledger) { b.arrive(1, live(1)) }, "was never sent"},
		{"a live one cannot be accepted", func(b *ledger) { b.accept(live(3)) }, "cannot be accepted"},
		{"a revoked recipient misses nothing", func(b *ledger) {
			b.accept(stored(1), stored(2))
			b.arrive(1, stored(1))
			b.forget(to)
		}, ""},
		{"and gets nothing", func(b *ledger) {
			b.accept(stored(1))
			b.forget(to)
			b.arrive(1, stored(1))
		}, "was never sent"},
		{"another one does", func(b *ledger) {
			b.accept(stored(1))
			b.forget(from)
		}, "is lost"},
		{"others may blame", func(b *ledger) { b.blame("%s", "the network") }, "the network"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newLedger()
			for n, isLive := range []bool{false, false, true, false} {
				if l := b.write(from, to, isLive); int(l.n) != n+1 || l.live != isLive {
					t.Fatalf("wrote %v", l)
				}
			}
			c.tell(b)
			_, faults := b.audit()
			switch {
			case c.want == "" && len(faults) > 0:
				t.Errorf("faults: %q", faults)
			case c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)):
				t.Errorf("faults: %q, want only %q", faults, c.want)
			}
		})
	}
}

func TestLedgerCounts(t *testing.T) {
	b := newLedger()
	var all []letter
	for range 100 {
		all = append(all, b.write(1, 2, false))
	}
	b.write(1, 2, true)
	b.accept(all...)
	b.accept(all...) // said twice, counted once
	for _, l := range all[:10] {
		b.arrive(1, l)
	}
	for _, l := range all[:5] {
		b.arrive(2, l)
	}
	sum, faults := b.audit()
	if want := (totals{sent: 101, accepted: 100, arrived: 10, repeated: 5, live: 1}); sum != want {
		t.Errorf("totals %+v, want %+v", sum, want)
	}
	if n, _ := b.missing(); n != 90 {
		t.Errorf("%d are missing, want 90", n)
	}
	if len(faults) != maxFaults+1 || !strings.Contains(faults[maxFaults], "70 more are lost") {
		t.Errorf("faults: %q", faults)
	}
}

// Every bit of a letter counts.
func TestPress(t *testing.T) {
	p := newPress()
	want := letter{from: 7, to: 9, n: 11, live: true}
	for _, size := range []int{letterMin, 64, 100, 5000} {
		ciphertext, nonce := p.print(want, size)
		if len(ciphertext) != size || len(nonce) != nonceSize {
			t.Fatalf("%d and %d bytes", len(ciphertext), len(nonce))
		}
		if l, err := p.read(ciphertext, nonce); err != nil || l != want {
			t.Fatalf("read %v, %v", l, err)
		}
		for i := range ciphertext {
			ciphertext[i] ^= 1
			if _, err := p.read(ciphertext, nonce); err == nil {
				t.Fatalf("byte %d of %d does not count", i, size)
			}
			ciphertext[i] ^= 1
		}
		for i := range nonce {
			nonce[i] ^= 1
			if _, err := p.read(ciphertext, nonce); err == nil {
				t.Fatalf("byte %d of the nonce does not count", i)
			}
			nonce[i] ^= 1
		}
		if _, err := p.read(ciphertext[:size-1], nonce); err == nil {
			t.Error("it may be cut")
		}
		if _, err := newPress().read(ciphertext, nonce); err == nil {
			t.Error("another press reads it")
		}
	}
	if _, err := p.read(nil, nil); err == nil {
		t.Error("nothing was read")
	}
}
