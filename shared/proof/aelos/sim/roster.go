package sim

import (
	"encoding/json"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/engine"
	"blindpost/shared/table"
)

// roster is the item as the dialect writes it.
type roster struct {
	Boat *struct {
		Conn gateway.Conn `json:"c"`
	} `json:"b"`
	Viewers []struct {
		Tag  string       `json:"t"`
		Conn gateway.Conn `json:"c"`
	} `json:"v"`
}

func (r *roster) full() bool { return len(r.Viewers) >= maxViewers }

// store is the model of what is stored.
type store struct {
	w       *world
	rosters map[string]*roster // by partition
	boats   map[string]*boat   // whose a partition is
	// tagOf and connOf are all tags that there ever were.
	tagOf  map[gateway.Conn]string
	connOf map[string]gateway.Conn
	// wasFull and wasAway are the last steps at which a boat had as many viewers as it
	// may, or was not there.
	wasFull, wasAway map[*boat]int
}

func (s *store) init(w *world) {
	*s = store{
		w: w, rosters: map[string]*roster{}, boats: map[string]*boat{},
		tagOf: map[gateway.Conn]string{}, connOf: map[string]gateway.Conn{},
		wasFull: map[*boat]int{}, wasAway: map[*boat]int{},
	}
}

// line finds a connection.
func (w *world) line(c gateway.Conn) *line {
	for _, k := range w.e.Sockets() {
		if k.ID == c {
			return lineOf(k)
		}
	}
	return nil
}

// of is the roster of a boat, an empty one if there is none.
func (s *store) of(b *boat) *roster {
	for partition, r := range s.rosters {
		if s.boats[partition] == b {
			return r
		}
	}
	return &roster{}
}

// written looks at a roster that was written.
func (s *store) written(t *engine.Task, k table.Key) {
	e := s.w.e
	if b, before := s.boats[k.Partition], s.rosters[k.Partition]; b != nil && before != nil {
		s.note(b, before)
	}
	it, ok := e.Peek(k)
	r := &roster{}
	if ok {
		if err := json.Unmarshal(it.Attrs["r"].Raw(), r); err != nil {
			e.Violate(propFrames, "%v writes a roster that cannot be read: %v", t, err)
			return
		}
	}
	s.rosters[k.Partition] = r
	if r.Boat != nil {
		s.belongs(t, k.Partition, r.Boat.Conn, false)
	}
	if len(r.Viewers) > maxViewers {
		e.Violate(propViewers, "%v: a boat has %d viewers", t, len(r.Viewers))
	}
	seen := map[string]bool{}
	for _, v := range r.Viewers {
		s.belongs(t, k.Partition, v.Conn, true)
		if seen[v.Tag] {
			e.Violate(propTags, "%v: two viewers have the tag %s", t, v.Tag)
		}
		seen[v.Tag] = true
		if c, used := s.connOf[v.Tag]; used && c != v.Conn {
			e.Violate(propTags, "%v: tag %s was that of %s and is that of %s", t, v.Tag, c, v.Conn)
		}
		if before, has := s.tagOf[v.Conn]; has && before != v.Tag && s.holds(k.Partition, v.Conn) > 1 {
			e.Violate(propTags, "%v: %s has two tags", t, v.Conn)
		}
		s.connOf[v.Tag], s.tagOf[v.Conn] = v.Conn, v.Tag
	}
	if b := s.boats[k.Partition]; b != nil {
		s.note(b, r)
	}
}

// note notes what is so at this step.
func (s *store) note(b *boat, r *roster) {
	if r.full() {
		s.wasFull[b] = s.w.e.Step
	}
	if r.Boat == nil {
		s.wasAway[b] = s.w.e.Step
	}
}

// holds is how often a connection is in a roster.
func (s *store) holds(partition string, c gateway.Conn) (n int) {
	for _, v := range s.rosters[partition].Viewers {
		if v.Conn == c {
			n++
		}
	}
	return n
}

// belongs checks that a connection is in the roster of its own boat, in its role, and
// not in another one.
func (s *store) belongs(t *engine.Task, partition string, c gateway.Conn, viewer bool) {
	l := s.w.line(c)
	if l == nil || l.of.viewer != viewer {
		s.w.e.Violate(propOthers, "%v: %s is in a roster as what it is not", t, c)
		return
	}
	if b := s.boats[partition]; b != nil && b != l.of.boat {
		s.w.e.Violate(propOthers, "%v: %v is in the roster of %s/%s", t, l, b.org, b.id)
		return
	}
	s.boats[partition] = l.of.boat
}
