package aelos

import "sync"

// rosterCache holds decoded rosters. The version in the table tells whether a cached one
// is current, so the cache may be out of date. When it is full it is emptied.
type rosterCache struct {
	mu sync.RWMutex
	m  map[string]*roster
}

const maxCached = 4096

func (k *rosterCache) get(group string) *roster {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.m[group]
}

// put caches a roster, which no caller may change from then on.
func (k *rosterCache) put(r *roster) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil || len(k.m) >= maxCached {
		k.m = make(map[string]*roster)
	}
	k.m[r.group] = r
}

func (k *rosterCache) forget(group string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.m, group)
}
