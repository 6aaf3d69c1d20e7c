package aelos

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/queue/local"
	"blindpost/shared/relay"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secretA = "0123456789abcdef0123456789abcdef"
	secretB = "another secret of thirty-two byte"
	secretX = "one that the relay has not heard of"
)

// world is the dialect on the real core, in a synctest bubble, with a front whose
// peers are the test. It may have several processes that share only the table.
type world struct {
	t     *testing.T
	table *flaky
	jobs  *local.Queue
	front *front
	nodes []*node
	log   *book
	count *counts

	mu  sync.Mutex
	ids int
}

// node is one process.
type node struct {
	core *relay.Relay
	d    *Dialect
}

type worldOptions struct {
	nodes  int
	ttl    time.Duration // of connection records; > 0 is the functions' way
	limits func(*Limits)
	path   string
	ctl    Controller
}

// story tells one in a bubble, on one machine.
func story(t *testing.T, tell func(w *world), change ...func(*worldOptions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := worldOptions{nodes: 1}
		for _, f := range change {
			f(&o)
		}
		w := &world{t: t, front: &front{conns: map[gateway.Conn]*line{}}, log: &book{}, count: &counts{n: map[string]int{}}}
		w.table = &flaky{Table: mem.New(time.Now)}
		w.jobs = local.New(local.Options{Handler: func(ctx context.Context, j queue.Job) error {
			return w.nodes[w.next()%len(w.nodes)].core.Job(ctx, j)
		}})
		log := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		for range o.nodes {
			core := relay.New(relay.Options{
				Table: w.table, Queue: w.jobs, Front: w.front, Pusher: push.NewLogSender(log), Log: log,
				Now: time.Now, Random: rand.Reader, NewID: func() string { return "id" + strconv.Itoa(w.next()) },
				ConnRecordTTL: o.ttl, Observer: w.count,
			})
			limits := DefaultLimits()
			if o.limits != nil {
				o.limits(&limits)
			}
			d := New(core, Options{
				Limits: limits, Path: o.path, Controller: o.ctl,
				Secrets: func(context.Context) ([]string, error) { return []string{secretA, secretB}, nil },
			})
			core.Use(d)
			w.nodes = append(w.nodes, &node{core, d})
		}
		tell(w)
		synctest.Wait()
		if err := w.jobs.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for _, secret := range []string{secretA, secretB, "eyJ", "ciphertext"} {
			if strings.Contains(w.log.String(), secret) {
				t.Errorf("the log holds %q:\n%s", secret, w.log)
			}
		}
	})
}

// functions makes the world one of functions: several processes, and a front that may
// fail to report the end of a connection.
func functions(o *worldOptions) { o.nodes, o.ttl = 3, 2*time.Hour+10*time.Minute }

func (w *world) next() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return w.ids
}

func (w *world) roster(org, boat string) *roster {
	w.t.Helper()
	r, err := w.nodes[0].d.load(context.Background(), groupOf(org, boat))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// line is one connection, seen from its peer.
type line struct {
	w     *world
	id    gateway.Conn
	n     *node
	frame int // number of the last frame, for its ID

	mu     sync.Mutex
	in     []gateway.Message
	closed *closing
	mute   bool // nobody is there, and the front does not know
	slow   bool // droppable messages are dropped
	broken error
	posted func(gateway.Message) // called before a message is taken
}

type closing struct {
	code   gateway.CloseCode
	reason string
}

// dial opens a connection, on the first process unless another is named.
func (w *world) dial(node ...int) *line {
	w.t.Helper()
	l := &line{w: w, id: gateway.Conn("conn" + strconv.Itoa(w.next())), n: w.nodes[0]}
	if len(node) > 0 {
		l.n = w.nodes[node[0]]
	}
	w.front.add(l)
	res, err := l.n.core.Connect(context.Background(), gateway.ConnectEvent{
		Conn: l.id, Path: Path, RemoteIP: netip.MustParseAddr("192.0.2.1"), At: time.Now(),
	})
	if err != nil || !res.Accepted() {
		w.t.Fatalf("failed to connect: %v, %v", res.Status, err)
	}
	return l
}

// event is a frame as the front gives it to the relay.
func (l *line) event(data []byte, text bool) gateway.FrameEvent {
	l.frame++
	return gateway.FrameEvent{Conn: l.id, ID: "f" + strconv.Itoa(l.frame), Data: data, Text: text, At: time.Now()}
}

// try sends a frame and returns what the handler answers.
func (l *line) try(data []byte, text bool) error {
	before := bytes.Clone(data)
	_, err := l.n.core.Frame(context.Background(), l.event(data, text))
	if !bytes.Equal(before, data) {
		l.w.t.Errorf("the relay has changed the frame")
	}
	return err
}

func (l *line) send(data []byte) {
	l.w.t.Helper()
	if err := l.try(data, false); err != nil {
		l.w.t.Fatalf("failed to handle a frame: %v", err)
	}
}

func (l *line) say(format string, args ...any) {
	l.w.t.Helper()
	if err := l.try(fmt.Appendf(nil, format, args...), true); err != nil {
		l.w.t.Fatalf("failed to handle a frame: %v", err)
	}
}

// hello says hello with claims.
func (l *line) hello(role string, proto int, claims jwt.MapClaims) *line {
	l.w.t.Helper()
	l.say(`{"t":"hello","proto":%d,"role":%q,"token":%q}`, proto, role, mint(l.w.t, secretA, claims))
	return l
}

// hangUp ends the connection; the front tells the relay.
func (l *line) hangUp() {
	l.w.t.Helper()
	l.end(gateway.CloseNormal)
	if err := l.n.core.Disconnect(context.Background(), gateway.DisconnectEvent{Conn: l.id, At: time.Now()}); err != nil {
		l.w.t.Fatalf("failed to handle a disconnect: %v", err)
	}
}

func (l *line) end(code gateway.CloseCode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil {
		l.closed = &closing{code: code}
	}
}

// got takes what has come since it was called last; text as it is, binary in hex.
func (l *line) got() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, m := range l.in {
		if m.Text {
			out = append(out, string(m.Data))
		} else {
			out = append(out, fmt.Sprintf("%x", m.Data))
		}
	}
	l.in = nil
	return out
}

// want says what must have come.
func (l *line) want(frames ...string) {
	l.w.t.Helper()
	if got := l.got(); !slices.Equal(got, frames) {
		l.w.t.Fatalf("%s has got\n  %s\nwant\n  %s", l.id, strings.Join(got, "\n  "), strings.Join(frames, "\n  "))
	}
}

// wantClosed says how the relay must have closed.
func (l *line) wantClosed(code gateway.CloseCode) {
	l.w.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil || l.closed.code != code {
		l.w.t.Fatalf("%s: closed is %+v, want %d", l.id, l.closed, code)
	}
}

func (l *line) wantOpen() {
	l.w.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != nil {
		l.w.t.Fatalf("%s: closed with %+v", l.id, *l.closed)
	}
}

// front is the front.
type front struct {
	mu    sync.Mutex
	conns map[gateway.Conn]*line
}

var _ gateway.Front = (*front)(nil)

func (f *front) add(l *line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[l.id] = l
}

func (f *front) line(c gateway.Conn) *line {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[c]
}

func (f *front) Post(_ context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	l := f.line(c)
	if l == nil {
		return 0, gateway.ErrGone
	}
	l.mu.Lock()
	posted := l.posted
	l.mu.Unlock()
	if posted != nil {
		posted(m)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed != nil:
		return 0, gateway.ErrGone
	case l.broken != nil:
		return 0, l.broken
	case l.mute:
		return gateway.Sent, nil
	case m.Droppable && l.slow:
		return gateway.Dropped, nil
	}
	m.Data = bytes.Clone(m.Data)
	l.in = append(l.in, m)
	return gateway.Sent, nil
}

func (f *front) Close(_ context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	l := f.line(c)
	if l == nil {
		return gateway.ErrGone
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != nil {
		return gateway.ErrGone
	}
	l.closed = &closing{code, reason}
	return nil
}

func (f *front) Stat(_ context.Context, c gateway.Conn) (gateway.Stat, error) {
	l := f.line(c)
	if l == nil {
		return gateway.Stat{}, gateway.ErrGone
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != nil {
		return gateway.Stat{}, gateway.ErrGone
	}
	return gateway.Stat{}, nil
}

func (f *front) Gone(gateway.Conn) bool { return false }

// flaky is a table in which a write may fail, before or after it was done, as it
// looks to a process that dies.
type flaky struct {
	table.Table
	mu   sync.Mutex
	left int // writes until it fails; 0 never
	done bool
}

var errDied = errors.New("the process has died")

// dieAfter makes the n-th write from now fail, done or not; all that follow too,
// until alive is called.
func (f *flaky) dieAfter(n int, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.done = n, done
}

func (f *flaky) alive() { f.dieAfter(0, false) }

func (f *flaky) step() (do bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.left == 0:
		return true, nil
	case f.left > 1:
		f.left--
		return true, nil
	case f.left == 1:
		f.left = -1
		return f.done, errDied
	}
	return false, errDied
}

func (f *flaky) Write(ctx context.Context, op table.Op) (table.Item, error) {
	do, died := f.step()
	if !do {
		return table.Item{}, died
	}
	it, err := f.Table.Write(ctx, op)
	return it, errors.Join(err, died)
}

func (f *flaky) Transact(ctx context.Context, ops []table.Op) error {
	do, died := f.step()
	if !do {
		return died
	}
	return errors.Join(f.Table.Transact(ctx, ops), died)
}

// counts is the observer.
type counts struct {
	relay.Observer
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[fmt.Sprintf(format, args...)]++
}

func (c *counts) Refused(_, reason string)               { c.add("refused %s", reason) }
func (c *counts) Authenticated(_, role, result string)   { c.add("auth %s %s", role, result) }
func (c *counts) Joined(_, role string)                  { c.add("joined %s", role) }
func (c *counts) Left(_, role string)                    { c.add("left %s", role) }
func (c *counts) Frame(_, kind string, _ time.Duration)  { c.add("frame %s", kind) }
func (c *counts) Message(_ relay.Class, r relay.Result)  { c.add("message %s", r) }
func (c *counts) Dropped(_ relay.Class, r string, n int) { c.add("dropped %s", r) }

// wantDropped says how many frames must have been dropped for a reason.
func (w *world) wantDropped(reason string, n int) {
	w.t.Helper()
	w.count.mu.Lock()
	defer w.count.mu.Unlock()
	if got := w.count.n["dropped "+reason]; got != n {
		w.t.Errorf("dropped as %s: %d, want %d (%v)", reason, got, n, slices.Sorted(maps.Keys(w.count.n)))
	}
}

type book struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Claims and tokens.

func boatClaims(org, id string) jwt.MapClaims {
	return jwt.MapClaims{"sub": id, "org": org, "role": "boat", "exp": time.Now().Add(24 * time.Hour).Unix()}
}

func viewerClaims(org, boat string) jwt.MapClaims {
	return jwt.MapClaims{"sub": "somebody", "boat": boat, "org": org, "role": "viewer", "exp": time.Now().Add(time.Hour).Unix()}
}

func controllerClaims(org, boat string) jwt.MapClaims {
	return with(viewerClaims(org, boat), "ctl", true)
}

func with(c jwt.MapClaims, name string, value any) jwt.MapClaims {
	c = maps.Clone(c)
	if c[name] = value; value == nil {
		delete(c, name)
	}
	return c
}

func mint(t testing.TB, secret string, claims jwt.MapClaims) string {
	t.Helper()
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What peers of the stories say first.

func (w *world) boat(proto int, node ...int) *line {
	w.t.Helper()
	return w.dial(node...).hello("boat", proto, boatClaims("org", "boat"))
}

func (w *world) viewer(proto int, node ...int) *line {
	w.t.Helper()
	return w.dial(node...).hello("viewer", proto, viewerClaims("org", "boat"))
}

func (w *world) controller(node ...int) *line {
	w.t.Helper()
	return w.dial(node...).hello("viewer", 2, controllerClaims("org", "boat"))
}

// tagOf is the tag of a viewer.
func (w *world) tagOf(l *line) string {
	w.t.Helper()
	v := w.roster("org", "boat").byConn(l.id)
	if v == nil {
		w.t.Fatalf("%s is not attached", l.id)
	}
	return v.Tag.String()
}

const (
	online    = `{"t":"boat-status","online":true}`
	offline   = `{"t":"boat-status","online":false}`
	nobody    = `{"t":"viewers","count":0}`
	welcome2  = `{"t":"welcome","proto":2}`
	welcome1  = `{"t":"welcome","proto":1}`
	noBoat    = `{"t":"error","code":"boat-offline","msg":"the boat cannot be reached"}`
	wrong     = `{"t":"error","code":"proto","msg":"this frame is not for you to send"}`
	unread    = `{"t":"error","code":"proto","msg":"the frame cannot be read"}`
	noAdmit   = `{"t":"error","code":"auth","msg":"the token is not valid"}`
	noReach   = `{"t":"result","id":0,"statusCode":503,"message":"the boat cannot be reached"}`
	notYours  = `{"t":"result","id":0,"statusCode":503,"message":"this session may not send commands"}`
	noCommand = `{"t":"result","id":0,"statusCode":503,"message":"the boat takes no commands"}`
	tooMany   = `{"t":"result","id":0,"statusCode":429,"message":"too many commands"}`
)

// viewers is that frame.
func viewers(count int, attach, detach []string) string {
	b, _ := json.Marshal(viewersFrame{T: typeViewers, Count: count, Attach: attach, Detach: detach})
	return string(b)
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	s = strings.ReplaceAll(s, " ", "")
	out := make([]byte, len(s)/2)
	if _, err := fmt.Sscanf(s, "%x", &out); err != nil {
		t.Fatal(err)
	}
	return out
}
