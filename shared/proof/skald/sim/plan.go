package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// mode is how the relay runs.
type mode int

const (
	// oneProcess is the single binary: all handlers share one relay, connection
	// records are in memory, the front confirms, a crash takes everything along.
	oneProcess mode = iota
	// functions is AWS: every handler runs on a relay of its own, connection
	// records are in the table, the front cannot confirm, a crash takes one
	// handler, whose event comes again.
	functions
)

func (m mode) String() string {
	if m == functions {
		return "functions"
	}
	return "one process"
}

// plan is what a seed decides about a schedule before it begins.
type plan struct {
	mode       mode
	namespaces int
	phones     int // per namespace
	paired     bool
	steps      int
	messages   int // at most, per schedule
	queued     int // frames that one peer sends ahead

	cap       int64
	ttl       time.Duration // of a message
	perMinute int64
	perIP     int64
	large     bool // frames so large that a pump has to pause

	stick  int // percent: go on with the same handler
	freeze int // permille: put a handler aside for a while
	faults faults
	// most is how many faults there are in all.
	most int

	churn, pairing, revoking int  // weights of what peers do
	long                     bool // days pass
	// loose says that the jobs of a connection come in any order with its frames, as
	// where a front calls the functions without a queue in between.
	loose  bool
	jumps  bool // the clock is set
	expiry bool // at the end, namespaces expire
}

// faults are probabilities in permille, for each step at which the fault is
// possible.
type faults struct {
	crash      int // before the operation
	crashAfter int // after the operation, before its answer
	storage    int // ErrBusy, nothing done
	ambiguous  int // an error although done
	post       int // an error, nothing sent
	postSent   int // an error although sent
	slow       int // the front gives up a slow reader
	close      int // an error of Close
	queue      int // Send fails
	twice      int // a job is run twice
	refuse     int // push provider: token is gone
	mute       int // percent: a Disconnect never comes
}

func drawPlan(seed uint64) plan {
	p := drawRest(seed)
	p.loose = p.mode == functions && rand.New(rand.NewPCG(seed, 0x6c6f6f73)).IntN(4) == 0
	return p
}

func drawRest(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0x706c616e))
	one := func(n int) bool { return r.IntN(n) == 0 }
	pick := func(of ...int) int { return of[r.IntN(len(of))] }

	p := plan{
		mode:       mode(r.IntN(2)),
		namespaces: 1,
		phones:     pick(1, 2, 2, 2, 3, 3),
		paired:     !one(5),
		steps:      pick(150, 300, 500, 800),
		messages:   pick(10, 25, 60),
		queued:     pick(1, 2, 4),
		cap:        int64(pick(1, 2, 3, 5, 200, 200)),
		stick:      pick(0, 0, 50, 80, 95),
		freeze:     pick(0, 0, 10, 50),
		churn:      pick(0, 1, 1, 2, 4),
		pairing:    pick(0, 1, 1, 3),
		revoking:   pick(0, 1, 1, 3),
		long:       one(3),
		ttl:        messageTTL,
		expiry:     one(3),
	}
	if one(6) {
		p.namespaces = 2
	}
	if p.long && one(2) {
		p.ttl = 24 * time.Hour
	}
	if one(12) {
		p.phones = 6
	}
	if one(3) {
		p.perMinute = int64(pick(5, 60))
	}
	if one(8) {
		p.perIP = 30
	}
	if one(3) { // few peers that are busy with each other
		p.phones, p.paired, p.queued = pick(1, 1, 2), true, 4
		p.churn, p.freeze, p.steps = pick(2, 4), pick(20, 50), pick(300, 500)
	}
	if one(24) {
		p.large, p.messages, p.cap = true, 12, 200
	}
	p.jumps = one(8)
	if one(4) {
		return p // no faults but those of the network
	}
	p.most = pick(1, 1, 2, 3, 6)
	f := &p.faults
	often := pick(3, 8, 20)
	kinds := []*int{&f.crash, &f.crashAfter, &f.storage, &f.post, &f.postSent, &f.twice, &f.refuse}
	if p.mode == functions {
		kinds = append(kinds, &f.ambiguous, &f.close, &f.queue)
		f.mute = pick(0, 30, 100)
	} else {
		kinds = append(kinds, &f.slow)
	}
	if one(2) { // one kind, and more of it
		*kinds[r.IntN(len(kinds))] = often * 3
		return p
	}
	for _, k := range kinds {
		if one(3) {
			*k = often
		}
	}
	return p
}

func (p plan) String() string {
	return fmt.Sprintf("%s, %d namespace(s) with %d phone(s), cap %d, %d steps, faults %+v (at most %d), stick %d%%, freeze %d‰, large %t, long %t, jumps %t, loose %t",
		p.mode, p.namespaces, p.phones, p.cap, p.steps, p.faults, p.most, p.stick, p.freeze, p.large, p.long, p.jumps, p.loose)
}
