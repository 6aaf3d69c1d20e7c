package relay_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/relay"
	"blindpost/shared/table/mem"
)

// stage is a relay with the Skald dialect whose front, queue, clock and provider
// are played by a test, one step at a time. It is made once and reset for each
// input: a relay has thousands of locks.
type stage struct {
	r       *relay.Relay
	process func() *relay.Relay // makes one more, that shares nothing but the table
	table   *relay.Register
	front   *front
	jobs    []queue.Job
	dead    map[string]bool // tokens that the provider does not know
	down    bool            // the provider
	now     time.Time
	start   time.Time
	random  *mathrand.ChaCha8
	ids     int
	frames  int
	// frameIDs says that the front delivers frames again, and names them.
	frameIDs bool
	log      bytes.Buffer

	sent    []letter // messages by the number that they begin with
	secrets [][]byte
	faults  []error
}

// newStage makes a stage of the single binary; settings change that.
func newStage(settings ...func(*relay.Options)) *stage {
	s := &stage{dead: map[string]bool{}}
	s.table = relay.NewRegister(nil)
	s.front = &front{s: s}
	s.random = mathrand.NewChaCha8([32]byte{})
	o := relay.Options{
		Table: s.table, Queue: (*jobQueue)(s), Front: s.front, Pusher: (*provider)(s),
		Log:    slog.New(slog.NewJSONHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:    func() time.Time { return s.now },
		Random: (*source)(s),
		NewID:  func() string { s.ids++; return fmt.Sprint("id", s.ids) },
		Limits: relay.Limits{MailboxCap: 150, MessageTTL: 7 * 24 * time.Hour, ConnectionsPerIP: 0, MessagesPerMinute: 200, ControlPerMinute: 60},
	}
	for _, set := range settings {
		set(&o)
	}
	s.process = func() *relay.Relay {
		r := relay.New(o)
		r.Use(skald.New(r, skald.Options{Limits: skald.DefaultLimits(), PushText: push.Text{Title: "Skald", Body: "Action required"}}))
		return r
	}
	s.r = s.process()
	return s
}

// reset empties the stage.
func (s *stage) reset() {
	s.start = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	s.now = s.start
	s.table.Reset(mem.New(func() time.Time { return s.now }))
	*s.front = front{s: s, conns: map[gateway.Conn]*line{}, outcome: gateway.Pending}
	s.table.Before, s.table.After = nil, nil
	s.jobs, s.secrets, s.faults, s.sent = nil, nil, nil, nil
	for _, a := range actors {
		s.secret(a.pub)
		s.secret([]byte(a.token))
	}
	clear(s.dead)
	s.down = false
	s.random.Seed([32]byte{1})
	s.ids = 0
	s.log.Reset()
}

// source is the randomness of the relay.
type source stage

func (r *source) Read(b []byte) (int, error) { return r.random.Read(b) }

var _ io.Reader = (*source)(nil)

// jobQueue keeps the jobs until the test runs them.
type jobQueue stage

var _ queue.Queue = (*jobQueue)(nil)

func (q *jobQueue) Send(_ context.Context, j queue.Job) error {
	j.Body = bytes.Clone(j.Body)
	q.jobs = append(q.jobs, j)
	return nil
}

// provider takes pushes, or does not.
type provider stage

var _ push.Sender = (*provider)(nil)

func (p *provider) Send(_ context.Context, n push.Notification) error {
	s := (*stage)(p)
	if n.Token == "" || len(n.Payload) == 0 || len(n.Payload) > push.MaxPayload {
		s.fault("a push of %d bytes, or without a token", len(n.Payload))
	}
	switch {
	case p.down:
		return errDown
	case p.dead[n.Token]:
		return push.ErrTokenGone
	}
	return nil
}

func (s *stage) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Errorf(format, args...))
}

// handled checks the result of a handler: whatever a peer sends must not be an error.
func (s *stage) handled(what string, err error) {
	if err != nil {
		s.fault("%s is not handled: %w", what, err)
	}
}

// runJobs runs what is due, and what that brings, until nothing is.
func (s *stage) runJobs() {
	for tries := 0; ; tries++ {
		i := slices.IndexFunc(s.jobs, func(j queue.Job) bool { return !j.At.After(s.now) })
		if i < 0 {
			return
		}
		if tries > 10_000 {
			s.fault("jobs beget jobs without end")
			return
		}
		j := s.jobs[i]
		s.jobs = slices.Delete(s.jobs, i, i+1)
		j.Attempt++
		err := s.r.Job(context.Background(), j)
		switch {
		case err == nil:
		case j.Kind == relay.JobPush && errors.Is(err, errDown):
			if j.Attempt < 3 {
				j.At = s.now.Add(time.Second)
				s.jobs = append(s.jobs, j)
			}
		default:
			s.fault("job %s failed: %w", j.Kind, err)
		}
	}
}

var errDown = errors.New("the provider is down")

// inspect looks at what is stored, in the middle of a story.
func (s *stage) inspect() {
	exact := s.now.Sub(s.start) < 10*time.Minute
	if err := relay.CheckInvariants(context.Background(), s.table, exact); err != nil {
		s.faults = append(s.faults, err)
	}
}

// check reports everything that went wrong so far.
func (s *stage) check() error {
	s.inspect()
	err := errors.Join(s.faults...)
	log := s.log.String()
	if log == "" {
		return err
	}
	for _, secret := range s.secrets {
		for _, form := range []string{
			string(secret), hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret),
			strings.Trim(strconv.Quote(string(secret)), `"`), strings.Trim(fmt.Sprint(secret), "[]"),
		} {
			if strings.Contains(log, form) {
				err = errors.Join(err, fmt.Errorf("the log holds a secret of %d bytes", len(secret)))
			}
		}
	}
	if strings.Contains(log, `"level":"ERROR"`) {
		err = errors.Join(err, errors.New("the relay has logged an error"))
	}
	return err
}

// secret notes what must not be logged; a few bytes are no secret, nor is what the
// relay might say itself.
func (s *stage) secret(b []byte) {
	if len(b) >= 12 && !words.Match(b) {
		s.secrets = append(s.secrets, bytes.Clone(b))
	}
}

var words = regexp.MustCompile(`^[ -~]{0,20}$`)

// connect opens a connection and takes the challenge.
func (s *stage) connect() *line {
	s.front.n++
	l := &line{id: gateway.Conn(fmt.Sprint("c", s.front.n)), number: s.front.n}
	res, err := s.r.Connect(context.Background(), gateway.ConnectEvent{
		Conn: l.id, Path: skald.Path, RemoteIP: netip.MustParseAddr("192.0.2.1"), At: s.now,
	})
	s.handled("a connect", err)
	if !res.Accepted() || len(res.First) != 1 {
		s.fault("a connect is answered with status %d and %d words", res.Status, len(res.First))
		return l
	}
	f := new(skaldpb.RelayFrame)
	if err := proto.Unmarshal(res.First[0].Data, f); err != nil || len(f.GetChallenge().GetNonce()) != 32 {
		s.fault("the first word is no challenge")
	}
	l.nonce = f.GetChallenge().GetNonce()
	s.secret(l.nonce)
	s.front.conns[l.id] = l
	return l
}

// frame brings what a peer has sent.
func (s *stage) frame(l *line, data []byte, text bool) {
	if l == nil || l.over {
		return
	}
	s.flush(l)
	e := gateway.FrameEvent{Conn: l.id, Data: data, Text: text, At: s.now}
	if s.frames++; s.frameIDs {
		e.ID = fmt.Sprint("frame ", s.frames)
	}
	_, err := s.r.Frame(context.Background(), e)
	s.handled("a frame", err)
}

// write puts a message on its way, to be handled before the next frame of the
// connection, or never. A live message counts from then.
func (s *stage) write(l *line, f *skaldpb.RelayFrame) {
	if l != nil && !l.over {
		l.wire = append(l.wire, marshal(f))
	}
}

func (s *stage) flush(l *line) {
	wire := l.wire
	l.wire = nil
	for _, data := range wire {
		s.frame(l, data, false)
	}
}

func (s *stage) oversize(l *line, text bool) {
	if l == nil || l.over {
		return
	}
	s.flush(l)
	_, err := s.r.Frame(context.Background(), gateway.FrameEvent{Conn: l.id, Oversize: true, Size: 1 << 40, Text: text, At: s.now})
	s.handled("an oversize frame", err)
	l.closed = true
}

// confirm says that the peer has got the first n messages that wait for it.
func (s *stage) confirm(l *line, n int) {
	if l == nil || l.over || len(l.marks) == 0 {
		return
	}
	n = min(n, len(l.marks))
	marks := l.marks[:n:n]
	l.marks = l.marks[n:]
	s.handled("a confirmation", s.r.Confirmed(context.Background(), gateway.ConfirmedEvent{Conn: l.id, Marks: marks, At: s.now}))
}

func (s *stage) disconnect(l *line) {
	if l == nil || l.over {
		return
	}
	l.closed = true
	s.handled("a disconnect", s.r.Disconnect(context.Background(), gateway.DisconnectEvent{Conn: l.id, Code: gateway.CloseAbnormal, At: s.now}))
	l.over = true
}

// reap brings the disconnects of what the relay has closed.
func (s *stage) reap() {
	for i := 1; i <= s.front.n; i++ {
		if l := s.front.conns[gateway.Conn(fmt.Sprint("c", i))]; l != nil && l.closed {
			s.disconnect(l)
		}
	}
}

// lines are the connections that are not over, oldest first.
func (s *stage) lines() (open []*line) {
	for i := 1; i <= s.front.n; i++ {
		if l := s.front.conns[gateway.Conn(fmt.Sprint("c", i))]; l != nil && !l.over {
			open = append(open, l)
		}
	}
	return open
}
