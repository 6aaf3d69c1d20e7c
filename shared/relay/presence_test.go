package relay_test

import (
	"testing"
	"time"

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

// An admission dies before it has told the others. When a newer connection takes over,
// the others hear ONLINE, whether the admission is delivered again, is refused because
// its time is over, or is not delivered again at all.
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
			func() {
				defer func() { _ = recover() }()
				_ = s.deliver(first, auth, "auth")
			}()
			s.front.before = nil
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
