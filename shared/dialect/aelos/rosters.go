package aelos

import "sync"

// rosters are those that have been decoded. What is in the table counts: one that is
// out of date is found out by its version, so they need not be exact, and are
// forgotten all at once when they become too many.
type rosters struct {
	mu sync.RWMutex
	m  map[string]*roster
}

const maxRosters = 4096

func (k *rosters) get(group string) *roster {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.m[group]
}

// put keeps a roster; nobody may change it any more.
func (k *rosters) put(r *roster) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil || len(k.m) >= maxRosters {
		k.m = make(map[string]*roster)
	}
	k.m[r.group] = r
}

func (k *rosters) forget(group string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.m, group)
}
