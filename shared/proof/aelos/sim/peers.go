package sim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	wire "blindpost/shared/client/aelos"
	"blindpost/shared/proof/engine"
)

// boat is a boat with all who may look at it.
type boat struct {
	*end
	world   *world
	org, id string
	viewers []*end
}

// end is a boat or a viewer.
type end struct {
	world  *world
	name   string
	boat   *boat
	viewer bool
	ctl    bool
	proto  int
	lines  []*line
}

func (p *end) String() string { return p.name }

// line is a connection of an end.
type line struct {
	world *world
	of    *end
	sock  *engine.Socket
	n     int // its number
	seq   int // of what it has sent
	said  bool
	// strange says that it has sent what it must not.
	strange bool
	dialed  time.Time
	// expires is when its token does.
	expires time.Time

	// As its peer has read.
	heard    int
	welcomed bool
	online   bool
	picture  picture

	// As it was posted.
	posts    int
	greeted  bool            // welcome was posted
	admitted int             // the step at which that was, the first time
	answers  map[string]int  // that it was not heard, by their kind
	posted   picture         // of viewers
	forgets  map[string]int  // tags that a boat was told to forget, with the step
	statuses []bool          // that were posted
	last     map[*line]int   // highest number posted, by sender
	got      map[string]bool // everything that was posted, by mark
}

func lineOf(k *engine.Socket) *line { return k.Owner.(*line) }

func (l *line) String() string { return l.sock.String() }

// picture is what a boat believes about its viewers.
type picture struct {
	count int
	tags  map[string]bool
}

func (p *picture) take(c wire.Viewers) {
	if p.tags == nil {
		p.tags = map[string]bool{}
	}
	p.count = c.Count
	for _, t := range c.Attach {
		p.tags[t] = true
	}
	for _, t := range c.Detach {
		delete(p.tags, t)
	}
}

func (p *end) dial() {
	w := p.world
	w.serial++
	l := &line{
		world: w, of: p, n: w.serial, dialed: w.e.Now(),
		answers: map[string]int{}, forgets: map[string]int{}, last: map[*line]int{}, got: map[string]bool{},
	}
	p.lines = append(p.lines, l)
	l.sock = w.e.Dial(l, p.name, "/v1/aelos", nil, 1)
}

func (l *line) opened() {
	w := l.world
	if w.diligent || !w.e.Chance(w.plan.late) {
		l.hello()
	}
}

func (l *line) ended() {
	p := l.of
	p.lines = slices.DeleteFunc(p.lines, func(x *line) bool { return x == l })
}

// hello says hello, now and then with a token that lets nobody in.
func (l *line) hello() {
	l.said = true
	w, p := l.world, l.of
	lives := []time.Duration{24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute}[w.e.Rand.IntN(4)]
	if w.diligent {
		lives = 24 * time.Hour
	}
	l.expires = w.e.Now().Add(lives).Truncate(time.Second) // as a token says it
	claims := wire.BoatClaims(p.boat.org, p.boat.id, l.expires)
	role := "boat"
	if p.viewer {
		role = "viewer"
		claims = wire.ViewerClaims(p.boat.org, p.name, p.boat.id, l.expires)
		if p.ctl {
			claims = wire.ControllerClaims(p.boat.org, p.name, p.boat.id, l.expires)
		}
	}
	key := secret
	if !w.diligent && w.e.Chance(20) {
		key, l.expires = strings.Repeat("x", 32), time.Time{}
	}
	token, err := wire.Mint([]byte(key), claims)
	if err != nil {
		panic(err)
	}
	l.sock.Send(marshal(map[string]any{"t": "hello", "proto": p.proto, "role": role, "token": token}), true)
}

// mark makes a ciphertext: who has sent it, as which number, and for whom.
func (l *line) mark(to string) string {
	l.seq++
	return fmt.Sprintf("%s %d %d %s .", cipherMark, l.n, l.seq, to)
}

// readMark takes a ciphertext apart.
func (w *world) readMark(s string) (from *line, seq int, to string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(s, cipherMark+" "), " ")
	if len(parts) != 4 || parts[3] != "." {
		return nil, 0, "", false
	}
	n, _ := strconv.Atoi(parts[0])
	seq, _ = strconv.Atoi(parts[1])
	for _, k := range w.e.Sockets() {
		if l := lineOf(k); l.n == n {
			return l, seq, parts[2], true
		}
	}
	return nil, 0, "", false
}

// payload makes a payload frame. Its counter says of which type it is.
func payload(kind byte, tag []byte, text string) []byte {
	b := append([]byte{kind}, tag...)
	return append(binary.BigEndian.AppendUint64(b, counterOf(kind)), text...)
}

func counterOf(kind byte) uint64 { return 0x0102030405060700 + uint64(kind) }

func (l *line) open() bool { return l.sock.Open() && l.sock.Attached() }

// newest is the connection of an end that it uses.
func (p *end) newest() *line {
	for i := len(p.lines) - 1; i >= 0; i-- {
		if p.lines[i].open() {
			return p.lines[i]
		}
	}
	return nil
}

func (p *end) acts(add func(int, func())) {
	w := p.world
	l := p.newest()
	if l == nil {
		if len(p.lines) == 0 {
			add(3, p.dial)
		}
		return
	}
	churn := w.e.Plan.Churn
	add(churn, func() { l.sock.HangUp() })
	add(churn, func() { l.sock.Lose() })
	if !p.viewer && len(p.lines) < 3 {
		add(churn, p.dial) // over a connection that it still has
	}
	if !l.said {
		add(2, l.hello)
		return
	}
	if l.sock.Queued() > 3 {
		return
	}
	if p.viewer && l.welcomed {
		add(w.plan.frames, func() { l.handshake(); l.command() })
	}
	if !p.viewer && l.welcomed && len(l.picture.tags) > 0 {
		add(w.plan.frames, func() { l.publish() })
	}
	if w.plan.odd > 0 && w.e.Chance(100) {
		add(w.plan.odd, l.odd)
	}
}

// handshake sends an hs1, in the name of whomever.
func (l *line) handshake() {
	l.sock.Send(marshal(map[string]any{"t": "hs1", "vs": "00000001", "e": l.mark("boat")}), true)
}

// command sends a command, if the protocol has any.
func (l *line) command() {
	if l.of.proto == 2 {
		kind := []byte{2, 4}[l.world.e.Rand.IntN(2)]
		l.sock.Send(payload(kind, nil, l.mark("boat")), false)
	}
}

// publish sends something to each of the viewers that a boat believes in.
func (l *line) publish() {
	var tags []string
	for t := range l.picture.tags {
		tags = append(tags, t)
	}
	slices.Sort(tags)
	for _, t := range tags {
		tag, err := wire.ParseTag(t)
		if err != nil {
			continue
		}
		switch n := l.world.e.Rand.IntN(4); {
		case n == 0:
			l.sock.Send(marshal(map[string]any{"t": "hs2", "vs": t, "e": l.mark(t), "s": "s"}), true)
		case n == 1 && l.of.proto == 2:
			l.sock.Send(payload(3, tag[:], l.mark(t)), false)
		default:
			l.sock.Send(payload(1, tag[:], l.mark(t)), false)
		}
	}
}

// odd sends what its role must not send, or what is none.
func (l *line) odd() {
	n := l.world.e.Rand.IntN(6)
	l.strange = l.strange || n < 5
	switch {
	case n == 0:
		l.sock.Send([]byte(`{"t":"welcome","proto":2}`), true)
	case n == 1:
		l.sock.Send([]byte(`{"t":`), true)
	case n == 2:
		l.sock.Send([]byte{1, 2, 3}, false)
	case n == 3 && l.of.viewer:
		l.sock.Send(payload(1, nil, l.mark("boat")), false)
	case n == 4 && l.of.viewer:
		l.sock.Send(marshal(map[string]any{"t": "hs2", "vs": "00000001", "e": l.mark("boat"), "s": "s"}), true)
	case n == 3:
		l.sock.Send(payload(2, []byte{0, 0, 0, 1}, l.mark("00000001")), false)
	case n == 4:
		l.sock.Send(payload(1, []byte{0, 0, 0, 1}, l.mark("00000001")), false)
	default:
		l.sock.Send([]byte(`{"t":"ping"}`), true)
	}
}
