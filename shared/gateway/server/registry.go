package server

import (
	"hash/maphash"
	"sync"

	"blindpost/shared/gateway"
)

// shards is the number of locks of the registry, so that posts to different
// connections rarely wait for one another.
const shards = 64

// registry finds connections by id.
type registry struct {
	seed  maphash.Seed
	shard [shards]struct {
		mu sync.RWMutex
		m  map[gateway.Conn]*conn
	}
}

func newRegistry() *registry {
	r := &registry{seed: maphash.MakeSeed()}
	for i := range r.shard {
		r.shard[i].m = make(map[gateway.Conn]*conn)
	}
	return r
}

func (r *registry) index(id gateway.Conn) uint64 {
	return maphash.String(r.seed, string(id)) % shards
}

// add reports false if the id is taken.
func (r *registry) add(c *conn) bool {
	s := &r.shard[r.index(c.id)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m[c.id] != nil {
		return false
	}
	s.m[c.id] = c
	return true
}

func (r *registry) remove(c *conn) {
	s := &r.shard[r.index(c.id)]
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, c.id)
}

// get returns nil for an unknown id.
func (r *registry) get(id gateway.Conn) *conn {
	s := &r.shard[r.index(id)]
	s.mu.RLock()
	c := s.m[id]
	s.mu.RUnlock()
	return c
}

// all is a snapshot.
func (r *registry) all() []*conn {
	var cs []*conn
	for i := range r.shard {
		s := &r.shard[i]
		s.mu.RLock()
		for _, c := range s.m {
			cs = append(cs, c)
		}
		s.mu.RUnlock()
	}
	return cs
}
