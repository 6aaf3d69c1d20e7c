package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	wire "blindpost/shared/client/aelos"
	"blindpost/shared/dialect/aelos"
	"blindpost/shared/gateway"
	"blindpost/shared/proof/engine"
	"blindpost/shared/push"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// The properties, as failures name them.
const (
	propViewers  = "at most eight viewers"
	propTags     = "a tag belongs to one connection"
	propSender   = "a tag is that of the sender"
	propOthers   = "nothing reaches somebody else"
	propRole     = "only a controller commands"
	propPicture  = "what the boat is told is so"
	propStatus   = "what a viewer is told is so"
	propOrder    = "order"
	propFrames   = "frames"
	propAnswers  = "an answer is true"
	propTokens   = "nobody stays longer than its token"
	propTakeover = "a takeover tells viewers nothing"
	propSessions = "sessions carry what they should"
	propSecrets  = "secrets"
	propEnd      = "nothing stays behind"
)

const (
	secret      = "the-minter-of-the-simulation-shares-this-with-the-relay"
	cipherMark  = "CIPHERTEXT-OF-THE-SIMULATION"
	maxViewers  = 8
	quickEnough = 4 * time.Second
)

// world is a schedule's.
type world struct {
	e      *engine.Engine
	plan   plan
	made   []*aelos.Dialect
	boats  []*boat
	store  store
	serial int
	// slow says that a handler has taken so long, or has met such a fault, that what it
	// has told may be told again.
	slow bool
	// diligent peers only do what finish.go asks of them.
	diligent bool
}

// plan is what a seed decides on top of the engine's plan.
type plan struct {
	boats, viewers int
	frames         int // weight of frames
	odd            int // weight of frames at odds with the protocol
	late           int // permille: a hello that comes late, or never
}

var _ engine.World = (*world)(nil)

// World makes the world of one schedule.
func World(e *engine.Engine) engine.World {
	r := rand.New(rand.NewPCG(e.Seed, 0x61656c6f73))
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	w := &world{e: e}
	w.plan = plan{
		boats: pick(1, 1, 2, 3), viewers: pick(1, 2, 3, 10), frames: pick(1, 3, 6), odd: pick(0, 1, 1), late: pick(0, 100),
	}
	w.store.init(w)
	return w
}

func (w *world) Dialect(core *relay.Relay, _ push.Sender) relay.Dialect {
	d := aelos.New(core, aelos.Options{
		Limits:  aelos.DefaultLimits(),
		Secrets: func(context.Context) ([]string, error) { return []string{secret}, nil },
	})
	w.made = append(w.made, d)
	return d
}

func (w *world) Volatile() []string { return []string{aelos.Partition} }

// Groups are none: the dialect has no members.
func (w *world) Groups() []string { return nil }

func (w *world) Text(where, text string) {
	for _, s := range []string{secret, cipherMark, "eyJ"} {
		if strings.Contains(text, s) {
			w.e.Violate(propSecrets, "a %s holds %s: %q", where, s, text)
		}
	}
}

func (w *world) Describe(data []byte, text bool) string {
	if text {
		if i := strings.Index(string(data), `"token"`); i > 0 {
			data = data[:i]
		}
		return string(data)
	}
	return fmt.Sprintf("%x %s", data[:min(len(data), 5)], data[min(len(data), 9):])
}

func (w *world) Pushed(t *engine.Task, _ push.Notification) {
	w.e.Violate(propFrames, "%v pushes", t)
}

func (w *world) TaskEnded(t *engine.Task) {
	if w.e.Now().Sub(t.At) > quickEnough || t.Faulty || t.Killed || t.Attempt > 1 {
		w.slow = true
	}
}

func (w *world) Crashed() {
	w.slow = true
	w.store.rosters = map[string]*roster{}
}

func (w *world) Wrote(t *engine.Task, ops []table.Op) {
	for i := range ops {
		if k := ops[i].Key; strings.HasPrefix(k.Partition, aelos.Partition) && ops[i].Action != table.Check {
			w.store.written(t, k)
		}
	}
}

// Begin makes two organisations with a boat of the same id, and one boat more.
func (w *world) Begin() {
	names := [][2]string{{"north", "bianca"}, {"south", "bianca"}, {"south", "albatross"}}
	for i := range w.plan.boats {
		b := &boat{world: w, org: names[i][0], id: names[i][1]}
		b.end = &end{world: w, name: "boat" + fmt.Sprint(i), boat: b, proto: 2}
		if w.e.Chance(200) {
			b.proto = 1
		}
		w.boats = append(w.boats, b)
		n := w.plan.viewers
		if i > 0 {
			n = min(n, 2)
		}
		for j := range n {
			v := &end{world: w, name: fmt.Sprintf("viewer%d.%d", i, j), boat: b, viewer: true, proto: 2, ctl: w.e.Chance(500)}
			if w.e.Chance(150) {
				v.proto = 1
			}
			b.viewers = append(b.viewers, v)
		}
	}
}

func (w *world) ends() []*end {
	var all []*end
	for _, b := range w.boats {
		all = append(append(all, b.end), b.viewers...)
	}
	return all
}

func (w *world) Acts(add func(weight int, do func())) {
	for _, p := range w.ends() {
		p.acts(add)
	}
}

func (w *world) Connected(k *engine.Socket, accepted bool, r gateway.ConnectResult) {
	l := lineOf(k)
	if accepted {
		l.opened()
	} else if r.Status != 0 {
		w.e.Violate(propAnswers, "%v is refused with %d", k, r.Status)
	}
}

func (w *world) Ended(k *engine.Socket) { lineOf(k).ended() }

func (w *world) Received(k *engine.Socket, f engine.Frame) {
	l := lineOf(k)
	l.heard++
	if !f.Text {
		return
	}
	c, err := wire.ParseControl(f.Data)
	if err != nil {
		w.e.Violate(propFrames, "%v is sent %s: %v", k, f.Data, err)
		return
	}
	switch c := c.(type) {
	case wire.Welcome:
		l.welcomed = true
	case wire.Viewers:
		l.picture.take(c)
	case wire.BoatStatus:
		l.online = c.Online
	}
}

// marshal is for frames of the peers.
func marshal(v map[string]any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
