package relay_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
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
	r      *relay.Relay
	table  *relay.Register
	front  *front
	jobs   []queue.Job
	dead   map[string]bool // tokens that the provider does not know
	down   bool            // the provider
	now    time.Time
	start  time.Time
	random *mathrand.ChaCha8
	ids    int
	frames int
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
	s.r = relay.New(o)
	s.r.Use(skald.New(s.r, skald.Options{Limits: skald.DefaultLimits(), PushText: push.Text{Title: "Skald", Body: "Action required"}}))
	return s
}

// reset begins anew.
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

// handled is called with what a handler has answered: whatever a peer sends, it
// is handled.
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

// front is a front that a test plays: it carries everything, and nothing arrives
// by itself.
type front struct {
	s       *stage
	conns   map[gateway.Conn]*line
	n       int
	outcome gateway.Outcome
	// before is called before a post; it may take time, or fail.
	before func(id gateway.Conn) error
	// lookAgain has a post find out that the connection was closed meanwhile.
	lookAgain bool
}

// line is one connection.
type line struct {
	id     gateway.Conn
	nonce  []byte
	closed bool // by the relay; its Disconnect is still to come
	over   bool
	got    []*skaldpb.RelayFrame
	marks  []uint64 // not confirmed
	number int
	who    string         // the key behind it; "" if nobody knows
	wire   [][]byte       // what the peer has sent and the relay has not handled
	last   map[string]int // number of the last message, by sender
}

var _ gateway.Front = (*front)(nil)

func (f *front) Post(_ context.Context, id gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	l := f.conns[id]
	if l == nil || l.closed || l.over {
		return 0, gateway.ErrGone
	}
	if f.before != nil {
		if err := f.before(id); err != nil {
			return 0, err
		}
		if f.lookAgain && l.closed {
			return 0, gateway.ErrGone
		}
	}
	frame := new(skaldpb.RelayFrame)
	if err := proto.Unmarshal(m.Data, frame); err != nil || m.Text {
		f.s.fault("the relay sent something that is no frame: %v", err)
		return f.outcome, nil
	}
	if err := wellFormed(frame); err != nil {
		f.s.fault("the relay sent a frame that %w", err)
	}
	l.got = append(l.got, frame)
	f.s.arrives(l, frame.GetMessage())
	if m.Mark != 0 && f.outcome == gateway.Pending {
		l.marks = append(l.marks, m.Mark)
	}
	return f.outcome, nil
}

// letter is a message that was sent.
type letter struct {
	ciphertext []byte
	conns      int // how many connections there had been
}

// label begins a ciphertext with a number, for arrives.
func (s *stage) label(ciphertext []byte) {
	binary.BigEndian.PutUint32(ciphertext, uint32(len(s.sent)))
	s.sent = append(s.sent, letter{ciphertext, s.front.n})
}

// arrives checks that on one connection the messages of one sender come in the
// order in which they were sent, and that a live one does not come on a connection
// that was made after it was handled.
func (s *stage) arrives(l *line, m *skaldpb.Message) {
	if len(m.GetCiphertext()) < 4 {
		return
	}
	n := int(binary.BigEndian.Uint32(m.GetCiphertext()))
	if n >= len(s.sent) || !bytes.Equal(s.sent[n].ciphertext, m.GetCiphertext()) {
		return // made by a mutation
	}
	if m.GetLive() && l.number > s.sent[n].conns {
		s.fault("live message %d has waited for another connection", n)
	}
	from := string(m.GetPeer())
	if last, ok := l.last[from]; ok && n <= last {
		s.fault("message %d comes after message %d", n, last)
	}
	if l.last == nil {
		l.last = map[string]int{}
	}
	l.last[from] = n
}

func (f *front) Close(_ context.Context, id gateway.Conn, _ gateway.CloseCode, _ string) error {
	l := f.conns[id]
	if l == nil || l.closed || l.over {
		return gateway.ErrGone
	}
	l.closed = true
	return nil
}

func (f *front) Stat(_ context.Context, id gateway.Conn) (gateway.Stat, error) {
	if l := f.conns[id]; l == nil || l.closed || l.over {
		return gateway.Stat{}, gateway.ErrGone
	}
	return gateway.Stat{ConnectedAt: f.s.now, LastActiveAt: f.s.now}, nil
}

func (f *front) Gone(id gateway.Conn) bool { return f.conns[id] == nil || f.conns[id].over }

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

// wellFormed says what is wrong with a frame of the relay.
func wellFormed(f *skaldpb.RelayFrame) error {
	size := func(b []byte, n int) error {
		if len(b) != n {
			return fmt.Errorf("has %d bytes where %d belong: %T", len(b), n, f.GetFrame())
		}
		return nil
	}
	code := func(code, message string) error {
		if !slices.Contains(errorCodes, code) || message == "" {
			return fmt.Errorf("has no code of section 12: %T", f.GetFrame())
		}
		return nil
	}
	switch f := f.GetFrame().(type) {
	case *skaldpb.RelayFrame_AuthOk:
		return size(f.AuthOk.GetNamespaceId(), 32)
	case *skaldpb.RelayFrame_AuthError:
		return code(f.AuthError.GetCode(), f.AuthError.GetMessage())
	case *skaldpb.RelayFrame_Error:
		return code(f.Error.GetCode(), f.Error.GetMessage())
	case *skaldpb.RelayFrame_Message:
		if len(f.Message.GetCiphertext()) == 0 {
			return errors.New("has no ciphertext")
		}
		return errors.Join(size(f.Message.GetPeer(), 32), size(f.Message.GetNonce(), 12))
	case *skaldpb.RelayFrame_PeerOffline:
		return size(f.PeerOffline.GetPeer(), 32)
	case *skaldpb.RelayFrame_PresenceEvent:
		if s := f.PresenceEvent.GetStatus(); s != skaldpb.Status_STATUS_ONLINE && s != skaldpb.Status_STATUS_OFFLINE {
			return errors.New("has no status")
		}
		return size(f.PresenceEvent.GetPubkey(), 32)
	case *skaldpb.RelayFrame_PresenceList:
		for _, key := range f.PresenceList.GetOnline() {
			if err := size(key, 32); err != nil {
				return err
			}
		}
		return nil
	case *skaldpb.RelayFrame_ClientPaired:
		return errors.Join(size(f.ClientPaired.GetClientEd25519Pub(), 32), size(f.ClientPaired.GetClientX25519Pub(), 32))
	case *skaldpb.RelayFrame_AuthorizeOk, *skaldpb.RelayFrame_PairingReady, *skaldpb.RelayFrame_PairingStopOk:
		return nil
	}
	return fmt.Errorf("no relay sends after the challenge: %T", f.GetFrame())
}

var errorCodes = []string{
	"challenge_timeout", "invalid_signature", "unauthorized", "not_found", "pairing_closed",
	"rate_limited", "payload_too_large", "queue_full", "bad_request",
}

// actor is somebody with a key: the agent is number 0.
type actor struct {
	key      ed25519.PrivateKey
	pub      []byte
	exchange []byte
	token    string
}

var actors = func() (all []actor) {
	for i := range byte(3) {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{i + 1}, ed25519.SeedSize))
		all = append(all, actor{
			key: key, pub: key.Public().(ed25519.PublicKey),
			exchange: bytes.Repeat([]byte{0x40 + i}, 32), token: fmt.Sprint("device-token-of-actor-", i),
		})
	}
	return all
}()

// namespace is that of the agent.
var namespace = actors[0].namespace()

// namespace is the one that the actor would own as an agent.
func (a actor) namespace() []byte {
	sum := sha256.Sum256(slices.Concat([]byte("skald-namespace-v1\x00"), a.pub))
	return sum[:]
}

func (a actor) sign(nonce []byte) []byte {
	return ed25519.Sign(a.key, slices.Concat([]byte("skald-relay-auth-v1\x00"), nonce))
}

// auth makes the Auth of an actor in the role of agent, client or pairing client.
func (a actor) auth(role int, nonce, pairing []byte) *skaldpb.RelayFrame {
	x := &skaldpb.Auth{Signature: a.sign(nonce)}
	switch role % 3 {
	case 0:
		x.Role = &skaldpb.Auth_Agent{Agent: &skaldpb.AuthAgent{AgentEd25519Pub: a.pub}}
	case 1:
		x.Role = &skaldpb.Auth_Client{Client: &skaldpb.AuthClient{
			NamespaceId: namespace, ClientEd25519Pub: a.pub, DeviceToken: a.token, Platform: skaldpb.Platform_PLATFORM_IOS}}
	case 2:
		x.Role = &skaldpb.Auth_Pairing{Pairing: &skaldpb.AuthPairing{
			NamespaceId: namespace, ClientEd25519Pub: a.pub, ClientX25519Pub: a.exchange,
			PairingToken: pairing, DeviceToken: a.token, Platform: skaldpb.Platform_PLATFORM_ANDROID}}
	}
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Auth{Auth: x}}
}

func marshal(f *skaldpb.RelayFrame) []byte {
	b, err := proto.Marshal(f)
	if err != nil {
		panic(err) // ours are all well-formed
	}
	return b
}
