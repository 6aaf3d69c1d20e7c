package sim

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/gateway"
	"blindpost/shared/proof/engine"
	"blindpost/shared/push"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// How the dialect and the core lay out their items.
const (
	devicePartition = "ak/"
	memberSort      = "m/device"
	countersSort    = "n"
	clientSort      = "c/"
	exchangeSort    = "e/"
	openSort        = "o/"
	payloadSort     = "p/"
)

var kinds = [...]string{peer.Request, peer.Response, peer.Completion}

// stored is an exchange as its item says.
type stored struct {
	id, client string
	phase      int64
	of         map[string]int64 // state of each message
	sizes      map[string]int64
	seq        int64
	version    int64
	deadline   time.Time
	// since is the step at which a message was accepted.
	since map[string]int
}

const (
	open    = 1
	closing = 2
	settled = 3
	expired = 4

	absent    = 0
	accepted  = 1
	delivered = 2
	discarded = 3
)

func (x *stored) live() bool { return x.phase == open || x.phase == closing }

// waits reports whether a message waits for its recipient, at a time.
func (x *stored) waits(kind string, now time.Time) bool {
	return x.live() && now.Before(x.deadline) && x.of[kind] == accepted
}

func (x *stored) bytes() (n int64) {
	for _, size := range x.sizes {
		n += size
	}
	return n
}

func (x *stored) String() string {
	return fmt.Sprintf("%s: phase %d, request %d, response %d, completion %d, version %d, sizes %v", x.id, x.phase,
		x.of[peer.Request], x.of[peer.Response], x.of[peer.Completion], x.version, x.sizes)
}

// valid are the combinations of the specification: of a phase and the three messages.
var valid = map[int64][3][]int64{
	0:       {{absent}, {absent}, {absent}},
	open:    {{accepted, delivered}, {absent, accepted, delivered}, {absent}},
	closing: {{accepted, delivered}, {absent, delivered, discarded}, {accepted}},
	settled: {{delivered}, {absent, delivered, discarded}, {delivered}},
	expired: {{delivered, discarded}, {absent, delivered, discarded}, {absent, discarded}},
}

// isValid checks a combination, and that a response implies that the request was
// delivered.
func isValid(phase, request, response, completion int64) bool {
	v, ok := valid[phase]
	for i, state := range []int64{request, response, completion} {
		found := false
		for _, s := range v[i] {
			found = found || s == state
		}
		ok = ok && found
	}
	return ok && (response == absent || request == delivered)
}

// store is the model of what is stored.
type store struct {
	w *world
	// exchanges is the latest of each, by id; it stays when its item expires.
	exchanges map[string]*stored
	payloads  map[table.Key][]byte // first accepted
	states    map[string]string    // of clients
	changes   map[string]int       // how often they have changed
	conns     map[string]gateway.Conn
	// told is the step at which the device was told that a client is revoked.
	told map[string]int
}

func (s *store) init(w *world) {
	*s = store{
		w: w, exchanges: map[string]*stored{}, payloads: map[table.Key][]byte{}, states: map[string]string{}, changes: map[string]int{},
		conns: map[string]gateway.Conn{}, told: map[string]int{},
	}
}

func (s *store) clientState(c *client) string { return s.states[c.id] }

// Wrote looks at each item that was written, as it is now.
func (w *world) Wrote(t *engine.Task, ops []table.Op) {
	s := &w.store
	partitions := map[string]bool{}
	for i := range ops {
		o := &ops[i]
		k := o.Key
		switch {
		case o.Action == table.Check:
		case strings.HasPrefix(k.Partition, relay.GroupPrefix) && k.Sort == memberSort:
			s.memberWritten(t, k)
		case strings.HasPrefix(k.Partition, devicePartition):
			partitions[k.Partition] = true
			switch {
			case strings.HasPrefix(k.Sort, exchangeSort):
				s.exchangeWritten(t, k)
			case strings.HasPrefix(k.Sort, payloadSort):
				s.payloadWritten(t, k)
			case strings.HasPrefix(k.Sort, clientSort):
				s.clientWritten(t, k)
			}
		}
	}
	for p := range partitions {
		s.checkPartition(t, p)
	}
}

func (s *store) exchangeWritten(t *engine.Task, k table.Key) {
	e := s.w.e
	it, ok := e.Peek(k)
	if !ok {
		e.Violate(propStates, "%v deletes an exchange", t)
		return
	}
	a := it.Attrs
	x := &stored{
		id: strings.TrimPrefix(k.Sort, exchangeSort), client: a["c"].Str(), phase: a["ph"].Num(), seq: a["q"].Num(),
		version: a["v"].Num(), deadline: time.UnixMilli(a["dl"].Num()), since: map[string]int{}, sizes: map[string]int64{},
		of: map[string]int64{peer.Request: a["rq"].Num(), peer.Response: a["rs"].Num(), peer.Completion: a["cp"].Num()},
	}
	for _, kind := range kinds {
		if v, ok := a["z."+kind]; ok {
			x.sizes[kind] = v.Num()
		}
	}
	if !isValid(x.phase, x.of[peer.Request], x.of[peer.Response], x.of[peer.Completion]) {
		e.Violate(propStates, "%v writes a combination that there is not: %v", t, x)
	}
	before := s.exchanges[x.id]
	s.exchanges[x.id] = x
	for _, kind := range kinds {
		if x.of[kind] == accepted {
			x.since[kind] = e.Step
		}
		if _, has := x.sizes[kind]; has != (x.live() && x.of[kind] == accepted) {
			e.Violate(propStates, "%v: the sizes are not those of what waits: %v", t, x)
		}
	}
	if before == nil {
		if x.version != 0 {
			e.Violate(propStates, "%v begins an exchange at version %d", t, x.version)
		}
		return
	}
	for _, kind := range kinds {
		if before.of[kind] == accepted && x.of[kind] == accepted {
			x.since[kind] = before.since[kind]
		}
		back := x.of[kind] < before.of[kind] || before.of[kind] == delivered && x.of[kind] != delivered
		if x.phase != 0 && back {
			e.Violate(propStates, "%v: the %s goes back: %v, then %v", t, kind, before, x)
		}
	}
	switch {
	case x.client != before.client || x.seq != before.seq:
		e.Violate(propStates, "%v begins an exchange again: %v, then %v", t, before, x)
	case x.version != before.version+1:
		e.Violate(propStates, "%v overwrites what it has not read: %v, then %v", t, before, x)
	case x.live() && !before.live():
		e.Violate(propStates, "%v revives an exchange: %v, then %v", t, before, x)
	case x.phase != 0 && x.phase < before.phase || before.phase == 0 && x.phase != 0:
		e.Violate(propStates, "%v: the exchange goes back: %v, then %v", t, before, x)
	case x.live() && !e.Now().Before(before.deadline):
		e.Violate(propStates, "%v revives an exchange after its deadline: %v, then %v", t, before, x)
	}
}

func (s *store) payloadWritten(t *engine.Task, k table.Key) {
	it, ok := s.w.e.Peek(k)
	if !ok {
		return
	}
	payload := it.Attrs["p"].Raw()
	if first, known := s.payloads[k]; known && !bytes.Equal(first, payload) {
		s.w.e.Violate(propFirst, "%v replaces %s: %s by %s", t, k.Sort, first, payload)
		return
	}
	s.payloads[k] = payload
}

func (s *store) clientWritten(t *engine.Task, k table.Key) {
	e := s.w.e
	it, ok := e.Peek(k)
	if !ok {
		e.Violate(propStates, "%v deletes a client", t)
		return
	}
	id, now := strings.TrimPrefix(k.Sort, clientSort), it.Attrs["st"].Str()
	before := s.states[id]
	s.states[id] = now
	if now != before {
		s.changes[id]++
	}
	may := map[string]string{
		"": "pending", "pending": "pending active revoked", "active": "active suspended revoked",
		"suspended": "suspended active revoked", "revoked": "revoked",
	}
	if !strings.Contains(" "+may[before]+" ", " "+now+" ") {
		e.Violate(propStates, "%v: a client goes from %q to %q", t, before, now)
	}
	if _, has := it.Attrs["t"]; has && now == "revoked" {
		e.Violate(propRevoked, "%v leaves the token of a revoked client", t)
	}
}

// memberWritten watches the pointer of a device to its connection.
func (s *store) memberWritten(t *engine.Task, k table.Key) {
	e := s.w.e
	it, ok := e.Peek(k)
	before := s.conns[k.Partition]
	now := gateway.Conn(it.Attrs["conn"].Str())
	if !ok {
		now = ""
	}
	s.conns[k.Partition] = now
	if before == "" || now == before {
		return
	}
	for _, sock := range e.Sockets() {
		if sock.ID == before && sock.Open() && now == "" {
			e.Violate(propNewest, "%v takes the device off %v, which is open", t, sock)
		}
	}
}

// checkPartition holds all that is stored of a device against each other. It runs
// when a write has taken effect as a whole.
func (s *store) checkPartition(t *engine.Task, partition string) {
	e := s.w.e
	now := e.Now()
	var openAll, bytesAll, pairing, pairingBytes int64
	openOf, bytesOf := map[string]int64{}, map[string]int64{}
	listed := map[string]bool{}
	for _, it := range e.PeekAll(partition, openSort) {
		x := s.exchanges[it.Attrs["x"].Str()]
		if x == nil || !x.live() || x.client != it.Attrs["c"].Str() {
			e.Violate(propStates, "%v: %s is listed as open and is not", t, it.Attrs["x"].Str())
			return
		}
		listed[x.id] = true
		for _, kind := range []string{peer.Request, peer.Completion} {
			if (it.Attrs[kind].Num() == 1) != (x.of[kind] == accepted) {
				e.Violate(propStates, "%v: the list and the exchange differ about the %s of %v", t, kind, x)
			}
		}
		if it.Attrs["b"].Num() != x.bytes() {
			e.Violate(propCounters, "%v: %v is listed with %d bytes", t, x, it.Attrs["b"].Num())
		}
		if !now.Before(x.deadline) {
			continue // it counts no more; the table keeps its items to the end of the second
		}
		if it.Attrs["a"].Str() != "" {
			pairing, pairingBytes = pairing+1, pairingBytes+x.bytes()
		}
		openAll, bytesAll = openAll+1, bytesAll+x.bytes()
		openOf[x.client], bytesOf[x.client] = openOf[x.client]+1, bytesOf[x.client]+x.bytes()
		for kind := range x.sizes {
			it, ok := e.Peek(table.Key{Partition: partition, Sort: payloadSort + x.id + "/" + kind})
			if !ok || int64(len(it.Attrs["p"].Raw())) != x.sizes[kind] {
				e.Violate(propStored, "%v: the %s of %v waits and its payload is not there", t, kind, x)
			}
		}
	}
	for _, x := range s.exchanges {
		if c := s.client(x.client); x.live() && now.Before(x.deadline) && !listed[x.id] && c != nil && s.partitionOf(c.device) == partition {
			e.Violate(propStates, "%v: %v is open and not listed", t, x)
		}
	}
	s.checkCounters(t, table.Key{Partition: partition, Sort: countersSort}, openAll, bytesAll)
	if it, ok := e.Peek(table.Key{Partition: partition, Sort: countersSort}); ok {
		if n, b := it.Attrs["po"].Num(), it.Attrs["pb"].Num(); n < pairing || b < pairingBytes {
			e.Violate(propCounters, "%v: of pairings %d are counted with %d bytes, there are %d with %d", t, n, b, pairing, pairingBytes)
		}
	}
	for client := range openOf {
		s.checkCounters(t, table.Key{Partition: partition, Sort: clientSort + client}, openOf[client], bytesOf[client])
	}
}

// checkCounters: they may be too high, since exchanges expire by themselves, but
// never too low.
func (s *store) checkCounters(t *engine.Task, k table.Key, open, bytes int64) {
	it, ok := s.w.e.Peek(k)
	if !ok {
		s.w.e.Violate(propCounters, "%v: there is no %s", t, k.Sort)
		return
	}
	if n, b := it.Attrs["no"].Num(), it.Attrs["nb"].Num(); n < open || b < bytes {
		s.w.e.Violate(propCounters, "%v: %s counts %d exchanges with %d bytes, there are %d with %d", t, k.Sort, n, b, open, bytes)
	}
}

func (s *store) client(id string) *client {
	for _, c := range s.w.clients {
		if c.id == id {
			return c
		}
	}
	return nil
}

// partitionOf is where the data of a device is.
func (s *store) partitionOf(d *device) string {
	it, _ := s.w.e.Peek(table.Key{Partition: relay.GroupPrefix + "agentknock/" + d.id, Sort: memberSort})
	return devicePartition + d.id + "/" + it.Attrs["gen"].Str()
}

// Pushed notes a push.
func (w *world) Pushed(t *engine.Task, n push.Notification) {
	if want, _ := push.AgentknockWake(); !bytes.Equal(n.Payload, want) {
		w.e.Violate(propWake, "%v pushes %s", t, n.Payload)
	}
	for _, d := range w.devices {
		it, _ := w.e.Peek(table.Key{Partition: relay.GroupPrefix + "agentknock/" + d.id, Sort: memberSort})
		if it.Attrs["tok"].Str() == n.Token {
			d.pushed = w.e.Step
		}
	}
}
