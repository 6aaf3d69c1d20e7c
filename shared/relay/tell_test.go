package relay_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// Helpers for tests on a stage, each of one bug.

var (
	errTrouble = errors.New("trouble")

	group = "skald/" + hex.EncodeToString(namespace)
)

// distributed are the settings of the functions.
func distributed(o *relay.Options) { o.Distributed, o.ConnRecordTTL = true, 2*time.Hour+10*time.Minute }

// inBothModes tells a story of the single binary and of the functions, whose front
// cannot confirm.
func inBothModes(t *testing.T, tell func(t *testing.T, s *stage)) {
	t.Run("one process", func(t *testing.T) { tell(t, begin(t)) })
	t.Run("functions", func(t *testing.T) { tell(t, begin(t, distributed)) })
}

// begin makes a stage; at the end of the test all must be in order.
func begin(t *testing.T, settings ...func(*relay.Options)) *stage {
	s := newStage(settings...)
	s.reset()
	if len(settings) > 0 {
		s.front.outcome = gateway.Sent
		s.frameIDs = true
	}
	t.Cleanup(func() {
		s.table.Before, s.table.After = nil, nil
		if err := s.check(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// home is an agent with a phone that are both connected.
func (s *stage) home() (agent, phone *line) {
	agent, phone, pairing := s.household()
	s.disconnect(pairing)
	s.reap()
	return agent, phone
}

// comes connects an actor: the agent, or a phone.
func (s *stage) comes(i int) *line {
	l := s.connect()
	s.frame(l, marshal(actors[i].auth(min(i, 1), l.nonce, nil)), false)
	return l
}

// says sends a message of a few words.
func (s *stage) says(l *line, to int, words string) {
	s.frame(l, marshal(message(actors[to].pub, []byte(words), false)), false)
}

func (s *stage) saysLive(l *line, to int, words string) {
	s.frame(l, marshal(message(actors[to].pub, []byte(words), true)), false)
}

// heard are the messages that have arrived on a connection.
func (l *line) heard() (words []string) {
	for _, f := range l.got {
		if m := f.GetMessage(); m != nil {
			words = append(words, string(m.GetCiphertext()))
		}
	}
	return words
}

// presence is what a connection was told about an actor.
func (l *line) presence(of int) (all []skaldpb.Status) {
	for _, f := range l.got {
		if p := f.GetPresenceEvent(); p != nil && bytes.Equal(p.GetPubkey(), actors[of].pub) {
			all = append(all, p.GetStatus())
		}
	}
	return all
}

const (
	online  = skaldpb.Status_STATUS_ONLINE
	offline = skaldpb.Status_STATUS_OFFLINE
)

func wantHeard(t *testing.T, l *line, want ...string) {
	t.Helper()
	if got := l.heard(); !slices.Equal(got, want) {
		t.Errorf("%s has got %q, want %q", l.id, got, want)
	}
}

// wantPresence is about the last words on an actor.
func wantPresence(t *testing.T, l *line, of int, want ...skaldpb.Status) {
	t.Helper()
	got := l.presence(of)
	if n := len(got); n > len(want) {
		got = got[n-len(want):]
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s was told %v, want %v", l.id, l.presence(of), want)
	}
}

// elsewhere runs do in another process, where no member is held.
func (s *stage) elsewhere(do func()) {
	here := s.r
	s.r = s.process()
	defer func() { s.r = here }()
	do()
}

// dies runs a handler that dies in the middle of its work.
func (s *stage) dies(t *testing.T, handler func()) {
	t.Helper()
	defer func() {
		s.front.before, s.table.Before, s.table.After = nil, nil, nil
		if recover() == nil {
			t.Error("the handler does not die")
		}
	}()
	handler()
}

// answered reports whether the last frame on a connection is of a kind.
func (l *line) answered(is func(*skaldpb.RelayFrame) bool) bool {
	return len(l.got) > 0 && is(l.got[len(l.got)-1])
}

// later lets time pass and runs what is due then.
func (s *stage) later(d time.Duration) {
	s.now = s.now.Add(d)
	s.runJobs()
}

// member is the item of an actor, nil if there is none.
func (s *stage) member(t *testing.T, i int) *relay.Member {
	t.Helper()
	m, err := s.r.GetMember(context.Background(), group, hex.EncodeToString(actors[i].pub))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func memberItem(i int) table.Key {
	return table.Key{Partition: relay.GroupPrefix + group, Sort: "m/" + hex.EncodeToString(actors[i].pub)}
}

func connItem(l *line) table.Key {
	return table.Key{Partition: relay.ConnPartition + string(l.id), Sort: "c"}
}

// item reads an item without the hooks of the test.
func (s *stage) item(t *testing.T, k table.Key) (table.Item, bool) {
	t.Helper()
	before, after := s.table.Before, s.table.After
	s.table.Before, s.table.After = nil, nil
	defer func() { s.table.Before, s.table.After = before, after }()
	it, err := s.table.Get(context.Background(), k)
	if errors.Is(err, table.ErrNotFound) {
		return it, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return it, true
}

// onceBefore does something, once, before the first step of a kind; onceAfter
// after it.
func (s *stage) onceBefore(is func(relay.Step) bool, do func() error) {
	s.table.Before = once(func() { s.table.Before = nil }, is, do)
}

func (s *stage) onceAfter(is func(relay.Step) bool, do func() error) {
	s.table.After = once(func() { s.table.After = nil }, is, do)
}

func once(end func(), is func(relay.Step) bool, do func() error) func(relay.Step) error {
	return func(step relay.Step) error {
		if !is(step) {
			return nil
		}
		end()
		return do()
	}
}

func fails() error { return errTrouble }

// writes makes a test for steps that write an item.
func writes(k table.Key) func(relay.Step) bool {
	return func(step relay.Step) bool { return !step.Read && step.Touches(k) }
}

// again delivers a frame once more, as a queue does; first is for a handler that
// may fail.
func (s *stage) deliver(l *line, f *skaldpb.RelayFrame, id string) error {
	data, err := proto.Marshal(f)
	if err != nil {
		return err
	}
	_, err = s.r.Frame(context.Background(), gateway.FrameEvent{Conn: l.id, ID: id, Data: data, At: s.now})
	return err
}

func numbered(n int) (words []string) {
	for i := range n {
		words = append(words, fmt.Sprint("number ", i))
	}
	return words
}
