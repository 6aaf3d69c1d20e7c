package main

import "testing"

func TestMemoryKeeperWaitsForCalm(t *testing.T) {
	const mb = 1 << 20
	k := memoryKeeper{last: memoryUse{cycles: 3}}
	steps := []struct {
		what string
		use  memoryUse
		want bool
	}{
		{"a collection has run meanwhile: not calm", memoryUse{cycles: 4, allocs: 50 * mb, live: 10 * mb}, false},
		{"calm, and worth it", memoryUse{cycles: 4, allocs: 51 * mb, live: 10 * mb}, true},
	}
	for _, s := range steps {
		if got := k.look(s.use); got != s.want {
			t.Errorf("%s: got %v", s.what, got)
		}
	}
	k.last, k.freed = memoryUse{cycles: 5, allocs: 51 * mb}, 51*mb
	for _, s := range []struct {
		what string
		use  memoryUse
		want bool
	}{
		{"too little since the last time", memoryUse{cycles: 5, allocs: 51*mb + mb/2, live: 2 * mb}, false},
		{"a megabyte of a small heap", memoryUse{cycles: 5, allocs: 52 * mb, live: 2 * mb}, true},
		{"a megabyte of a large heap", memoryUse{cycles: 5, allocs: 52 * mb, live: 100 * mb}, false},
	} {
		if got := k.look(s.use); got != s.want {
			t.Errorf("%s: got %v", s.what, got)
		}
	}
	k.done(memoryUse{cycles: 6, allocs: 52 * mb})
	looks := 0
	for !k.look(memoryUse{cycles: 6, allocs: 60 * mb}) {
		looks++
	}
	if looks != memoryGap {
		t.Errorf("gave memory back again after %d looks, want %d", looks, memoryGap)
	}
}
