package relay_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// Bugs that the simulation, the restart tests or a review have found, each as its shortest
// sequence of steps. docs/reliability.md lists them.

// pairs pairs a phone, authorises it and lets it go.
func (s *stage) pairs(agent *line, i int) {
	token := pairingToken(i)
	s.frame(agent, marshal(pairingStart(token, 300)), false)
	l := s.connect()
	s.frame(l, marshal(actors[i].auth(2, l.nonce, token)), false)
	s.disconnect(l)
	s.frame(agent, marshal(authorize(actors[i].pub)), false)
}

// A phone that has connected often, was revoked and has paired again counts as new: its
// frames are not refused as those of an older connection.
func TestPairedAgainIsNotStale(t *testing.T) {
	s := begin(t)
	agent, phone := s.home()
	for range 5 {
		s.says(phone, 0, "before")
		phone = s.comes(1)
		s.reap()
	}
	s.frame(agent, marshal(authorize()), false)
	s.reap()
	s.pairs(agent, 1)
	before := len(agent.heard())
	s.says(s.comes(1), 0, "after")
	if got := agent.heard(); len(got) != before+1 || got[before] != "after" {
		t.Errorf("got %q", got)
	}
}

// An Authorize that dies between its transaction and what follows: the next one, or
// the same again, finishes it before it says AuthorizeOk.
func TestRevocationThatIsInterrupted(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		agent, phone := s.home()
		s.disconnect(phone)
		s.says(agent, 1, "what it must not get")
		lane := s.member(t, 1).Lane
		phone = s.comes(1)
		agent.marks, phone.marks = nil, nil
		s.onceAfter(writes(memberItem(1)), fails)
		if err := s.deliver(agent, authorize(), "list"); !errors.Is(err, errTrouble) {
			t.Fatal(err)
		}
		if err := s.deliver(agent, authorize(), "list"); err != nil {
			t.Fatal(err)
		}
		if !phone.closed {
			t.Error("the connection of the revoked phone is open")
		}
		if left, err := s.table.Everything(context.Background(), "l/"+lane); err != nil || len(left) > 0 {
			t.Errorf("%d messages are left, %v", len(left), err)
		}
		wantPresence(t, agent, 1, offline)
	})
}

// A deletion of a namespace that dies after its first step is taken up again.
func TestDeletionThatIsInterrupted(t *testing.T) {
	s := begin(t)
	agent, phone := s.home()
	s.says(phone, 0, "for nobody")
	s.disconnect(phone)
	s.disconnect(agent)
	s.now = s.now.Add(7*24*time.Hour + time.Minute)
	s.onceAfter(writes(memberItem(0)), fails)
	if err := s.r.Sweep(context.Background()); !errors.Is(err, errTrouble) {
		t.Fatal(err)
	}
	s.handled("the next sweep", s.r.Sweep(context.Background()))
	if left, err := s.table.Everything(context.Background(), relay.GroupPrefix); err != nil || len(left) > 0 {
		t.Errorf("%d items are left, %v", len(left), err)
	}
}

// A post fails and its handler dies before it can ask for a retry: a job posts all the
// same.
func TestFailedPostIsTriedAgain(t *testing.T) {
	s := begin(t, distributed)
	agent, phone := s.home()
	s.front.before = failNextPost(phone.id)
	s.onceAfter(func(step relay.Step) bool {
		return !step.Read && step.Touches(memberItem(1)) && step.Ops[0].Set["cs"].Num() == 1
	}, fails)
	if err := s.deliver(agent, message(actors[1].pub, []byte("one"), false), "m1"); !errors.Is(err, errTrouble) {
		t.Fatal(err)
	}
	s.later(10 * time.Second)
	s.says(agent, 1, "two")
	wantHeard(t, phone, "one", "two")
}

// failNextPost fails the next post to a connection.
func failNextPost(id gateway.Conn) func(gateway.Conn) error {
	done := false
	return func(to gateway.Conn) error {
		if done || to != id {
			return nil
		}
		done = true
		return errTrouble
	}
}

// A live message meets a connection that has just been replaced: it goes to the new
// one, and the sender is not told that the peer is offline.
func TestLiveMessageMeetsAReplacement(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		agent, phone := s.home()
		var newer *line
		s.front.before = oncePost(func() {
			newer = s.comes(1)
			s.confirmAll(newer)
		})
		// The front looks whether the connection is there before it takes time.
		s.front.lookAgain = true
		s.saysLive(agent, 1, "live")
		wantHeard(t, phone)
		wantHeard(t, newer, "live")
		if agent.answered(func(f *skaldpb.RelayFrame) bool { return f.GetPeerOffline() != nil }) {
			t.Error("the agent is told that the phone is offline")
		}
	})
}

// An admission that is delivered again after a newer connection has replaced its own does
// not replace the newer one.
func TestAdmissionThatComesAgain(t *testing.T) {
	s := begin(t, distributed)
	_, phone := s.home()
	s.disconnect(phone)
	old := s.connect()
	auth := actors[1].auth(1, old.nonce, nil)
	s.onceAfter(writes(memberItem(1)), fails) // it has joined and does not know it
	if err := s.deliver(old, auth, "auth"); !errors.Is(err, errTrouble) {
		t.Fatal(err)
	}
	// While it is admitted for the second time, the newer connection joins.
	var newer *line
	s.onceBefore(writes(memberItem(1)), func() error {
		newer = s.connect()
		other := *s.member(t, 1)
		_, err := s.r.Join(context.Background(), &relay.Conn{ID: newer.id, Dialect: "skald", At: s.now}, relay.Joining{Member: &other})
		return err
	})
	if err := s.deliver(old, auth, "auth"); err != nil {
		t.Fatal(err)
	}
	if m := s.member(t, 1); m.Conn != newer.id || newer.closed || !old.closed {
		t.Errorf("the phone is connected by %q; old closed %t, newer closed %t", m.Conn, old.closed, newer.closed)
	}
	s.later(time.Minute)
	s.disconnect(newer)
}

// A join whose answer was lost is taken back by the end of its connection.
func TestJoinThatIsDoneButReportedAsFailed(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		agent, phone := s.home()
		s.disconnect(phone)
		l := s.connect()
		s.onceAfter(writes(memberItem(1)), fails)
		if err := s.deliver(l, actors[1].auth(1, l.nonce, nil), "auth"); !errors.Is(err, errTrouble) {
			t.Fatal(err)
		}
		s.disconnect(l)
		if m := s.member(t, 1); m.Conn != "" {
			t.Errorf("the phone is still connected by %s", m.Conn)
		}
		wantPresence(t, agent, 1, offline)
		s.comes(1)
		wantPresence(t, agent, 1, online)
	})
}

// A frame that was stored, but not handed over before its handler died, is known
// again: it counts neither against a full mailbox nor against the rate, and arrives
// once.
func TestStoredFrameThatComesAgain(t *testing.T) {
	s := begin(t, distributed, func(o *relay.Options) { o.Limits.MailboxCap, o.Limits.MessagesPerMinute = 1, 1 })
	agent, phone := s.home()
	s.front.before = func(id gateway.Conn) error {
		if id == phone.id {
			panic("the handler dies")
		}
		return nil
	}
	m := message(actors[1].pub, []byte("once"), false)
	func() {
		defer func() { _ = recover() }()
		_ = s.deliver(agent, m, "m1")
	}()
	s.front.before = nil
	if err := s.deliver(agent, m, "m1"); err != nil {
		t.Fatal(err)
	}
	wantHeard(t, phone, "once")
	if agent.answered(func(f *skaldpb.RelayFrame) bool { return f.GetError() != nil }) {
		t.Error("the frame is refused")
	}
}

// The same for a live message that waits its turn behind a mailbox.
func TestLiveFrameThatComesAgain(t *testing.T) {
	s := begin(t, distributed)
	agent, phone := s.home()
	s.disconnect(phone)
	s.says(agent, 1, "waits")
	m := message(actors[1].pub, []byte("live"), true)
	s.front.before = oncePost(func() {
		// The phone is connecting and its mailbox not yet empty.
		s.onceAfter(func(step relay.Step) bool { return !step.Read && len(step.Ops) == 2 }, fails)
		for i := range 2 {
			if err := s.deliver(agent, m, "live"); (err == nil) != (i == 1) {
				t.Errorf("delivery %d: %v", i+1, err)
			}
		}
	})
	wantHeard(t, s.comes(1), "waits", "live")
}

// A PairingStart that is delivered again does not make its token valid again.
func TestPairingStartThatComesAgain(t *testing.T) {
	s := begin(t, distributed)
	agent, phone := s.home()
	s.disconnect(phone)
	token := pairingToken(5)
	start := pairingStart(token, 300)
	if err := s.deliver(agent, start, "start"); err != nil {
		t.Fatal(err)
	}
	pair := func(i int) *line {
		l := s.connect()
		s.frame(l, marshal(actors[i].auth(2, l.nonce, token)), false)
		return l
	}
	pair(1)
	if err := s.deliver(agent, start, "start"); err != nil {
		t.Fatal(err)
	}
	if l := pair(2); !l.answered(func(f *skaldpb.RelayFrame) bool { return f.GetAuthError().GetCode() == "pairing_closed" }) {
		t.Error("the token opens the door twice")
	}
}

// A page of the mailbox in which everything has expired is not its end.
func TestExpiredMessagesHideNoFreshOne(t *testing.T) {
	s := begin(t)
	agent, phone := s.home()
	s.disconnect(phone)
	for range 30 { // more than a page of 1 MB
		s.says(agent, 1, string(make([]byte, 60_000)))
	}
	s.now = s.now.Add(4 * 24 * time.Hour)
	s.says(agent, 1, "fresh")
	s.now = s.now.Add(4 * 24 * time.Hour)
	wantHeard(t, s.comes(1), "fresh")
}

// Live messages wait for a connection that ends before it has got them, and one that
// has replaced it: their senders are told when the last one ends.
func TestLiveMessagesOfAReplacedConnection(t *testing.T) {
	s := begin(t)
	agent, phone := s.home()
	s.disconnect(phone)
	for range 60 {
		s.says(agent, 1, string(make([]byte, 60_000)))
	}
	s.comes(1)
	s.saysLive(agent, 1, "live")
	second := s.comes(1)
	s.disconnect(second)
	if !slices.ContainsFunc(agent.got, func(f *skaldpb.RelayFrame) bool { return f.GetPeerOffline() != nil }) {
		t.Error("the sender was not told")
	}
}

// Two handlers send for one sender: that of the older connection does not lower the fence
// that the newer one has raised.
func TestFenceIsNotLowered(t *testing.T) {
	s := begin(t, distributed)
	agent, old := s.home()
	s.says(old, 0, "one")
	newer := s.comes(1)
	first := true
	s.table.Before = func(step relay.Step) error {
		if !first || step.Read || len(step.Ops) != 2 || !step.Touches(memberItem(0)) {
			return nil
		}
		first = false
		// The old handler has read the agent. Now the newer connection raises the
		// fence, in a process of its own.
		it, _ := s.item(t, memberItem(0))
		for name, v := range it.Attrs {
			if len(name) > 2 && name[:2] == "f." {
				_, err := s.table.Write(context.Background(), table.Op{
					Action: table.Update, Key: memberItem(0), Set: table.Attrs{name: table.Number(v.Num() + 1)},
				})
				return err
			}
		}
		return errTrouble
	}
	s.says(old, 0, "two")
	s.table.Before = nil
	s.later(time.Second)
	old.over = true
	s.says(newer, 0, "three")
	wantHeard(t, agent, "one", "three")
}
