package relay_test

import (
	"testing"

	"blindpost/shared/gateway"
)

// A member is revoked while the others are being told that it has come, or gone: the
// last word is that it is offline.
func TestLastWordAboutARevokedMember(t *testing.T) {
	revoke := func(s *stage, agent *line) func() error {
		return func() error {
			s.frame(agent, marshal(authorize()), false)
			return nil
		}
	}
	t.Run("it comes", func(t *testing.T) {
		s := begin(t, scattered)
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
		s := begin(t, scattered)
		agent, phone := s.home()
		wantPresence(t, agent, 1, online)
		s.onceAfter(writes(memberItem(1)), revoke(s, agent))
		s.disconnect(phone)
		s.runJobs()
		wantPresence(t, agent, 1, offline)
	})
}

// An admission dies before it has told the others, and when it is delivered again a
// newer connection has taken over, which is no news: the others hear ONLINE all the
// same.
func TestAdmissionThatDiesAndIsReplaced(t *testing.T) {
	s := begin(t, scattered)
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
	func() {
		defer func() { _ = recover() }()
		_ = s.deliver(first, auth, "auth")
	}()
	s.front.before = nil
	s.comes(1)
	wantPresence(t, agent, 1, online, offline)
	if err := s.deliver(first, auth, "auth"); err != nil {
		t.Fatal(err)
	}
	wantPresence(t, agent, 1, offline, online)
	s.reap()
}
