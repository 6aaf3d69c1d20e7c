package engine

import (
	"fmt"
	"math/rand/v2"
)

// Mode is how the relay runs.
type Mode int

// The modes, see the package documentation.
const (
	OneProcess Mode = iota
	Functions
)

func (m Mode) String() string {
	if m == Functions {
		return "functions"
	}
	return "one process"
}

// Plan is what a seed decides about a schedule before it begins.
type Plan struct {
	Mode   Mode
	Steps  int
	Stick  int // percent: go on with the same handler
	Freeze int // permille: put an operation aside for a while
	Churn  int // weight of what ends connections
	Long   bool
	// Loose says that the jobs of a connection come in any order with its frames, as
	// where a front calls the functions without a queue in between.
	Loose  bool
	Faults Faults
	// Most is how many faults there are in all.
	Most int
}

// Faults are probabilities in permille, for each step at which the fault is
// possible.
type Faults struct {
	Crash      int // before the operation
	CrashAfter int // after the operation, before its answer
	Storage    int // an error, nothing done
	Ambiguous  int // an error although done
	Post       int // an error, nothing sent
	PostSent   int // an error although sent
	Slow       int // the front gives up a slow reader
	Close      int // an error of Close
	Queue      int // Send fails
	Twice      int // a job or a frame is handled twice
	Refuse     int // push provider: token is gone
	Mute       int // percent: a Disconnect never comes
}

func drawPlan(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 0x656e67696e65))
	one := func(n int) bool { return r.IntN(n) == 0 }
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	p := Plan{
		Mode:   Mode(r.IntN(2)),
		Steps:  pick(200, 300, 500, 800),
		Stick:  pick(0, 0, 50, 80, 95),
		Freeze: pick(0, 0, 10, 50),
		Churn:  pick(0, 1, 1, 2, 4),
		Long:   one(3),
	}
	p.Loose = p.Mode == Functions && one(4)
	if one(4) {
		return p // no faults but those of the network
	}
	p.Most = pick(1, 1, 2, 3, 6)
	f := &p.Faults
	often := pick(3, 8, 20)
	kinds := []*int{&f.Crash, &f.CrashAfter, &f.Storage, &f.Post, &f.PostSent, &f.Refuse}
	if p.Mode == Functions {
		kinds = append(kinds, &f.Ambiguous, &f.Close, &f.Queue, &f.Twice)
		f.Mute = pick(0, 30, 100)
	} else {
		kinds = append(kinds, &f.Slow)
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

func (p Plan) String() string {
	return fmt.Sprintf("%s, %d steps, faults %+v (at most %d), stick %d%%, freeze %d‰, churn %d, long %t, loose %t",
		p.Mode, p.Steps, p.Faults, p.Most, p.Stick, p.Freeze, p.Churn, p.Long, p.Loose)
}
