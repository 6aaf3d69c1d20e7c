package aelos

import (
	"crypto/rand"
	"errors"
	"math"
	"testing"
)

func newKeys(t *testing.T) KeyPair {
	t.Helper()
	k, err := GenerateKeyPair(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sessions makes both ends of one.
func sessions(t *testing.T) (app, boat *Session) {
	t.Helper()
	a, b := newKeys(t), newKeys(t)
	i, e, err := Initiate(rand.Reader, a, b.Public)
	if err != nil {
		t.Fatal(err)
	}
	e, s, boat, err := Respond(rand.Reader, b, a.Public, e)
	if err != nil {
		t.Fatal(err)
	}
	if app, err = i.Finish(e, s); err != nil {
		t.Fatal(err)
	}
	return app, boat
}

// The counter rules of section 5, row by row.
func TestCounters(t *testing.T) {
	app, boat := sessions(t)
	seal := func(counter uint64) []byte {
		t.Helper()
		out, err := boat.sealAt(nil, Snapshot, counter, []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	wantOpen := func(counter uint64, sealed []byte, want error) {
		t.Helper()
		if _, err := app.Open(nil, Snapshot, counter, sealed); !errors.Is(err, want) {
			t.Fatalf("counter %d: got %v, want %v", counter, err, want)
		}
	}
	first := seal(1)
	wantOpen(1, first, nil)
	wantOpen(1, first, ErrReplayed)
	wantOpen(0, first, ErrReplayed)

	// Gaps are allowed, and what was skipped comes too late.
	second, ninth := seal(2), seal(9)
	wantOpen(9, ninth, nil)
	wantOpen(2, second, ErrReplayed)

	// A forged frame burns no counter.
	tenth := seal(10)
	wantOpen(500, tenth, ErrForged)
	wantOpen(10, append([]byte{tenth[0] ^ 1}, tenth[1:]...), ErrForged)
	wantOpen(10, tenth, nil)

	// Nor does a sender use one twice or go back.
	for _, counter := range []uint64{10, 9, 0} {
		if _, err := boat.sealAt(nil, Outcome, counter, nil); err == nil {
			t.Fatalf("counter %d is used after 10", counter)
		}
	}
	// Types share the sequence.
	_, counter, err := boat.Seal(nil, Outcome, nil)
	if err != nil || counter != 11 {
		t.Fatalf("the next counter is %d, %v", counter, err)
	}
	seal(math.MaxUint64)
	if _, _, err := boat.Seal(nil, Snapshot, nil); err == nil {
		t.Fatal("the counter has wrapped")
	}
}

// No key is used by both ends.
func TestDirections(t *testing.T) {
	app, boat := sessions(t)
	sealed, counter, err := boat.Seal(nil, Snapshot, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := boat.Open(nil, Snapshot, counter, sealed); !errors.Is(err, ErrForged) {
		t.Errorf("the boat opens what it has sealed: %v", err)
	}
	if _, err := app.Open(nil, Snapshot, counter, sealed); err != nil {
		t.Error(err)
	}
}

// A snapshot has no associated data; the other types have their type byte, and
// so cannot be taken for each other.
func TestTypesAreBound(t *testing.T) {
	for _, sealedAs := range []Type{Snapshot, Command, Outcome, Identify} {
		for _, openedAs := range []Type{Snapshot, Command, Outcome, Identify} {
			app, boat := sessions(t)
			sealed, counter, err := app.Seal(nil, sealedAs, []byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = boat.Open(nil, openedAs, counter, sealed)
			if sealedAs == openedAs && err != nil || sealedAs != openedAs && !errors.Is(err, ErrForged) {
				t.Errorf("%#02x opened as %#02x: %v", sealedAs, openedAs, err)
			}
		}
	}
}
