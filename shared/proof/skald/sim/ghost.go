package sim

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// ghost is the model: what the table holds, as far as the properties speak of
// it, kept by watching the writes. It is the only part of the simulation that
// knows how the core lays out its items.
type ghost struct {
	sim     *sim
	members map[table.Key]*member
	lanes   map[string]*lane
	groups  map[string]*group
}

// member mirrors the item of a member.
type member struct {
	key                 table.Key
	group               string
	peer                *peer
	lane, gen, st, role string
	tok                 string
	conn                gateway.Conn
	cs, ep, tail, n, tn int64
	seen                time.Time
}

// lane mirrors a mailbox.
type lane struct {
	id      string
	owner   table.Key
	peer    *peer
	dead    string       // the rule that has ended it
	conn    gateway.Conn // the current connection when it ended
	silent  bool         // AuthorizeOk has confirmed its revocation
	entries map[int64]*entry
	last    int64
	// Frames that were deleted after they had expired: the counters of the relay go on
	// counting them.
	lateStored, lateTransient int64
	fences                    map[string]int64 // the highest epoch that a sender has spoken with, by its lane
}

// entry mirrors a frame in a mailbox.
type entry struct {
	lane    *lane
	seq     int64
	msg     *message // nil: a notice of the relay
	conn    gateway.Conn
	expires time.Time
	put     int            // the step
	posted  bool           // handed to a connection, as far as the relay could know
	sent    bool           // the front has taken it
	handed  []gateway.Conn // to whom it was posted
	read    bool           // the peer has it
}

// group mirrors what is known of a namespace in the relay.
type group struct {
	root    table.Key
	gen     string
	hasRoot bool
	// idle is since when nobody has been connected, by the relay's clock; it is
	// meaningless while somebody is.
	idle time.Time
}

func (g *ghost) init(s *sim) {
	g.sim = s
	g.members = make(map[table.Key]*member)
	g.lanes = make(map[string]*lane)
	g.groups = make(map[string]*group)
}

const (
	groupPrefix = "g/"
	memberSort  = "m/"
	lanePrefix  = "l/"
	connPrefix  = "c/"
	rootSort    = "x/root"
	windowSort  = "x/pairing"
)

func (g *ghost) lane(id string) *lane {
	l := g.lanes[id]
	if l == nil {
		l = &lane{id: id, entries: make(map[int64]*entry), fences: make(map[string]int64)}
		g.lanes[id] = l
	}
	return l
}

func (g *ghost) group(name string) *group {
	gr := g.groups[name]
	if gr == nil {
		gr = &group{}
		g.groups[name] = gr
	}
	return gr
}

// memberOf is a peer's member item, nil if there is none.
func (g *ghost) memberOf(p *peer) *member {
	return g.members[table.Key{Partition: groupPrefix + p.space.group, Sort: memberSort + p.ident.hex}]
}

// online reports whether a member has a connection, as far as the relay can
// know.
func (g *ghost) online(m *member) bool {
	return m != nil && m.conn != "" && !stepFront{g.sim}.Gone(m.conn)
}

// expired reports whether an entry's time has ever been over.
func (e *entry) expired() bool {
	return !e.lane.sim().latest.Before(e.expires)
}

func (l *lane) sim() *sim { return l.peer.sim }

// depth is the number of stored frames that have not expired.
func (l *lane) depth() int64 {
	var n int64
	for _, e := range l.entries {
		if e.conn == "" && !e.expired() {
			n++
		}
	}
	return n
}

// mayDepth also counts what may still be there after the clock was set back.
func (l *lane) mayDepth() int64 {
	var n int64
	for _, e := range l.entries {
		if e.conn == "" && (!e.expired() || l.sim().now().Before(e.expires)) {
			n++
		}
	}
	return n
}

// readMember mirrors a member item as it is now.
func (g *ghost) readMember(k table.Key) *member {
	it, err := g.sim.durable.Get(background, k)
	if errors.Is(err, table.ErrNotFound) {
		return nil
	}
	if err != nil {
		g.sim.violate("storage", "failed to read a member: %v", err)
		return nil
	}
	a := it.Attrs
	m := &member{
		key: k, group: strings.TrimPrefix(k.Partition, groupPrefix),
		peer: g.sim.peerOfHex(strings.TrimPrefix(k.Sort, memberSort)),
		lane: a["lane"].Str(), gen: a["gen"].Str(), st: a["st"].Str(), role: a["role"].Str(), tok: a["tok"].Str(),
		conn: gateway.Conn(a["conn"].Str()), cs: a["cs"].Num(), ep: a["ep"].Num(),
		tail: a["tail"].Num(), n: a["n"].Num(), tn: a["tn"].Num(),
	}
	if v, ok := a["seen"]; ok {
		m.seen = time.UnixMilli(v.Num()).UTC()
	}
	return m
}

// laneSeq is the number of a lane's entry.
func laneSeq(k table.Key) int64 {
	n, err := strconv.ParseInt(k.Sort, 16, 64)
	if err != nil {
		return -1
	}
	return n
}

// closed notes that a front has closed a connection.
func (g *ghost) closed(k *socket) {
	if k.lane == "" {
		return
	}
	if gr := g.groups[k.peer.space.group]; gr != nil {
		gr.idle = g.sim.now()
	}
}

// compare checks the model against the table itself.
func (g *ghost) compare(when string) {
	s := g.sim
	for id, l := range g.lanes {
		items, err := table.QueryAll(context.Background(), s.durable, table.Query{Partition: lanePrefix + id})
		if err != nil {
			s.violate("storage", "failed to read a lane: %v", err)
			return
		}
		there := make(map[int64]bool, len(items))
		for _, it := range items {
			seq := laneSeq(it.Key)
			there[seq] = true
			if l.entries[seq] == nil {
				s.violate("storage", "%s: lane %s has entry %d, which nobody has written or which was deleted", when, id, seq)
			}
		}
		for seq, e := range l.entries {
			if !there[seq] && !e.expired() {
				s.violate(propLoss, "%s: entry %d of lane %s (%v) is not in the table any more", when, seq, id, e.msg)
			}
		}
	}
	for k, m := range g.members {
		now := g.readMember(k)
		if now == nil || now.lane != m.lane || now.conn != m.conn || now.ep != m.ep || now.tail != m.tail {
			s.violate("storage", "%s: the table does not hold %v as it was written", when, m.peer)
		}
	}
}
