package skald

import (
	"errors"
	"math"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// However often the process dies, and wherever saving fails, no counter is
// given out twice, they rise, and few are skipped. Received counters only rise,
// too.
func TestCountersSurviveCrashes(t *testing.T) {
	key := PublicKey{4}
	rapid.Check(t, func(t *rapid.T) {
		store := &failingStore{}
		if err := store.Save(someState(0)); err != nil {
			t.Fatal(err)
		}
		load := func() *ledger {
			s, err := store.Load()
			if err != nil {
				t.Fatal(err)
			}
			return newLedger(store, s)
		}
		l := load()
		var last, seen uint64 = 0, 7
		restarts := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "messages") {
					n, err := l.nextSend(key)
					if err != nil {
						t.Fatal(err)
					}
					if n <= last || n > last+1+restarts*reserveBlock {
						t.Fatalf("counter %d after %d and %d restarts", n, last, restarts)
					}
					last, restarts = n, 0
				}
			},
			"receive": func(t *rapid.T) {
				n := rapid.Uint64Range(0, 200).Draw(t, "counter")
				err := l.accept(key, n)
				if fresh := n > seen; fresh != (err == nil) || !fresh && !errors.Is(err, ErrReplay) {
					t.Fatalf("counter %d after %d: %v", n, seen, err)
				}
				seen = max(seen, n)
			},
			"fail to save": func(t *rapid.T) {
				store.err = errDisk
				defer func() { store.err = nil }()
				if err := l.accept(key, seen+1); !errors.Is(err, errDisk) {
					t.Fatalf("accepted without saving: %v", err)
				}
				// Up to a block is reserved already and may be used.
				for range reserveBlock + 1 {
					n, err := l.nextSend(key)
					if errors.Is(err, errDisk) {
						return
					}
					if err != nil || n <= last {
						t.Fatalf("counter %d after %d: %v", n, last, err)
					}
					last, restarts = n, 0
				}
				t.Fatal("counted on without saving")
			},
			"crash": func(*rapid.T) {
				l = load()
				restarts++
			},
		})
	})
}

func TestReservingIsRare(t *testing.T) {
	store := NewMemoryStore(someState(0))
	l := newLedger(store, someState(0))
	before := store.Saves()
	for want := uint64(1); want <= 1000; want++ {
		if got, err := l.nextSend(PublicKey{4}); err != nil || got != want {
			t.Fatalf("counter %d, want %d: %v", got, want, err)
		}
	}
	if saves := store.Saves() - before; saves != 16 {
		t.Errorf("1000 counters took %d saves, want 16", saves)
	}
}

func TestCountersAreGivenOutOnce(t *testing.T) {
	l := newLedger(NewMemoryStore(someState(0)), someState(0))
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for range 200 {
				n, err := l.nextSend(PublicKey{4})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				if seen[n] {
					t.Errorf("counter %d twice", n)
				}
				seen[n] = true
				mu.Unlock()
			}
		})
	}
	senders.Wait()
	if len(seen) != 1600 || !seen[1600] {
		t.Errorf("%d counters", len(seen))
	}
}

func TestCountersDoNotWrap(t *testing.T) {
	s := someState(math.MaxUint64 - 10)
	l := newLedger(NewMemoryStore(s), s)
	if n, err := l.nextSend(PublicKey{4}); err == nil {
		t.Errorf("counter %d", n)
	}
	if _, err := l.nextSend(PublicKey{9}); !errors.Is(err, ErrUnknownPeer) {
		t.Errorf("unknown peer: %v", err)
	}
	if err := l.accept(PublicKey{9}, 1); !errors.Is(err, ErrUnknownPeer) {
		t.Errorf("unknown peer: %v", err)
	}
}
