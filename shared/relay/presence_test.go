package relay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// A member is revoked while the others are being told that it is online, or offline: the
// last that they are told is offline.
func TestLastWordAboutARevokedMember(t *testing.T) {
	revoke := func(s *stage, agent *line) func() error {
		return func() error {
			s.frame(agent, marshal(authorize()), false)
			return nil
		}
	}
	t.Run("it comes", func(t *testing.T) {
		s := begin(t, distributed)
		agent, phone := s.home()
		s.disconnect(phone)
		s.front.before = func(to gateway.Conn) error {
			if to != agent.id {
				return nil
			}
			s.front.before = nil
			return revoke(s, agent)()
		}
		s.comes(1)
		s.reap()
		s.runJobs()
		wantPresence(t, agent, 1, offline)
	})
	t.Run("it goes", func(t *testing.T) {
		s := begin(t, distributed)
		agent, phone := s.home()
		wantPresence(t, agent, 1, online)
		s.onceAfter(writes(memberItem(1)), revoke(s, agent))
		s.disconnect(phone)
		s.runJobs()
		wantPresence(t, agent, 1, offline)
	})
}

// An admission dies before it has told the others. When a newer connection joins, the
// others are told ONLINE, whether the admission is delivered again, is refused because of
// its timeout, or is not delivered again at all.
func TestAdmissionThatDiesAndIsReplaced(t *testing.T) {
	for _, c := range []struct {
		name  string
		again bool
		after time.Duration
	}{
		{"delivered again", true, 0},
		{"delivered again too late", true, time.Minute},
		{"not delivered again", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, distributed)
			agent, phone := s.home()
			s.disconnect(phone)
			first := s.connect()
			auth := actors[1].auth(1, first.nonce, nil)
			s.front.before = func(to gateway.Conn) error {
				if to == agent.id {
					panic("the handler dies")
				}
				return nil
			}
			s.dies(t, func() { _ = s.deliver(first, auth, "auth") })
			wantPresence(t, agent, 1, online, offline)
			s.later(c.after)
			if c.again && c.after > 0 {
				s.handled("the admission again", s.deliver(first, auth, "auth"))
			}
			s.comes(1)
			wantPresence(t, agent, 1, offline, online)
			if c.again && c.after == 0 {
				s.handled("the admission again", s.deliver(first, auth, "auth"))
			}
			s.reap()
			wantPresence(t, agent, 1, online)
		})
	}
}

// stale delays the next presence of the phone on its way to the agent: before it arrives,
// meanwhile runs in another process. The handler that has sent it dies before it looks again.
func (s *stage) stale(agent *line, meanwhile func()) {
	s.front.before = func(to gateway.Conn) error {
		if to != agent.id {
			return nil
		}
		s.front.before = nil
		s.elsewhere(meanwhile)
		s.table.Before = func(step relay.Step) error {
			if step.Read && step.Touches(memberItem(1)) {
				panic("the handler dies")
			}
			return nil
		}
		return nil
	}
}

// The others are told that a member is offline when it is online again already, and the
// handler that has told them dies: the run that does its work again tells them ONLINE.
func TestLastWordOfWhoDies(t *testing.T) {
	t.Run("a disconnect", func(t *testing.T) {
		s := begin(t, distributed)
		agent, phone := s.home()
		s.stale(agent, func() { s.comes(1) })
		s.dies(t, func() { s.disconnect(phone) })
		wantPresence(t, agent, 1, online, offline)
		s.disconnect(phone)
		wantPresence(t, agent, 1, offline, online)
	})
	for _, reported := range []bool{false, true} {
		t.Run(fmt.Sprint("a job, the end is reported: ", reported), func(t *testing.T) {
			s := begin(t, distributed)
			agent, phone := s.home()
			phone.closed = true
			s.saysLive(agent, 1, "are you there?")
			job := s.jobs[len(s.jobs)-1]
			job.Attempt = 1
			s.stale(agent, func() {
				if reported {
					s.disconnect(phone)
				}
				s.comes(1)
			})
			s.dies(t, func() { _ = s.r.Job(context.Background(), job) })
			wantPresence(t, agent, 1, online, offline)
			job.Attempt = 2
			s.handled("the job again", s.r.Job(context.Background(), job))
			wantPresence(t, agent, 1, offline, online)
		})
	}
	comesAndGoes := func(s *stage, agent *line) {
		s.comes(1).closed = true
		s.saysLive(agent, 1, "are you there?")
		s.runJobs()
	}
	revoked := func(s *stage, agent *line) { s.frame(agent, marshal(authorize()), false) }
	for _, c := range []struct {
		name      string
		after     time.Duration
		meanwhile func(s *stage, agent *line)
	}{
		{"an admission", 0, comesAndGoes},
		{"an admission of a member that is revoked meanwhile", 0, revoked},
		{"the same that comes again too late", time.Minute, revoked},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, distributed)
			agent, phone := s.home()
			s.disconnect(phone)
			first := s.connect()
			auth := actors[1].auth(1, first.nonce, nil)
			s.stale(agent, func() { c.meanwhile(s, agent) })
			s.dies(t, func() { _ = s.deliver(first, auth, "auth") })
			wantPresence(t, agent, 1, offline, online)
			s.later(c.after)
			s.handled("the admission again", s.deliver(first, auth, "auth"))
			wantPresence(t, agent, 1, online, offline)
			s.reap()
			wantPresence(t, agent, 1, online, offline)
		})
	}
}

// A phone that was revoked has paired again and is online before the others were told that
// it was offline: the last that they are told is online.
func TestLastWordAboutAMemberThatIsPairedAgain(t *testing.T) {
	s := begin(t, distributed)
	agent, phone, pairing := s.household()
	s.disconnect(pairing)
	s.frame(agent, marshal(authorize(actors[1].pub, actors[2].pub)), false)
	other := s.comes(2)
	s.front.before = func(to gateway.Conn) error {
		if to != other.id {
			return nil
		}
		s.front.before = nil
		s.elsewhere(func() {
			s.disconnect(phone)
			s.disconnect(agent)
			agent = s.comes(0)
			s.frame(agent, marshal(pairingStart(pairingToken(9), 300)), false)
			again := s.connect()
			s.frame(again, marshal(actors[1].auth(2, again.nonce, pairingToken(9))), false)
			s.disconnect(again)
			s.frame(agent, marshal(authorize(actors[1].pub, actors[2].pub)), false)
			s.comes(1)
		})
		return nil
	}
	s.frame(agent, marshal(authorize(actors[2].pub)), false)
	if s.front.before != nil {
		t.Fatal("the others are not told")
	}
	s.runJobs()
	wantPresence(t, other, 1, online)
}
