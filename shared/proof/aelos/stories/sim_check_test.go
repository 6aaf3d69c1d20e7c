package stories

import (
	"fmt"
	"slices"
	"time"

	wire "blindpost/shared/client/aelos"
)

// check compares what everybody knows with what is so.
func (s *sea) check() {
	for _, b := range s.boats {
		s.checkBoat(b)
	}
	for _, e := range s.ends() {
		e.mu.Lock()
		for _, err := range e.faults {
			s.errorf("%v", err)
		}
		e.mu.Unlock()
	}
}

func (s *sea) errorf(format string, args ...any) {
	s.w.T.Helper()
	s.w.T.Errorf("round %d: %s", s.round, fmt.Sprintf(format, args...))
}

// alive says that a connection ought to be open, and checks that it is open or not
// accordingly.
func (s *sea) alive(e *simEnd) bool {
	l := e.latest()
	if l == nil {
		return false
	}
	up := e.up()
	if up && time.Now().After(l.expires) {
		s.errorf("%s is connected although its token has run out", e.name)
	}
	return up
}

func (s *sea) checkBoat(b *simBoat) {
	online := s.alive(&b.simEnd)
	s.events(b)
	var watching []*simViewer
	for _, v := range b.viewers {
		if !s.alive(&v.simEnd) {
			continue
		}
		watching = append(watching, v)
		if v.online == nil || *v.online != online {
			s.errorf("%s believes that the boat's being online is %v", v.name, v.online)
		}
	}
	if len(watching) > 8 {
		s.errorf("%s has %d viewers", b.name, len(watching))
	}
	if online {
		s.shakeAgain(watching)
		s.events(b)
		b.mu.Lock()
		told, secured := b.end.Watchers(), len(b.end.Secured())
		b.mu.Unlock()
		if told != len(watching) || secured != told {
			s.errorf("%s is told of %d viewers and has sessions with %d; there are %d", b.name, told, secured, len(watching))
		}
		s.checkSnapshot(b, watching)
	}
	for _, v := range watching {
		s.checkCommand(b, v, online)
	}
}

// shakeAgain lets viewers without a session try again, as apps do: a handshake that
// was on its way to a boat's connection while another one took over has come to
// nothing, and the relay cannot know.
func (s *sea) shakeAgain(watching []*simViewer) {
	for _, v := range watching {
		v.mu.Lock()
		secure := v.end.Secure()
		v.mu.Unlock()
		if secure {
			continue
		}
		if err := v.say(func() ([]wire.Message, error) {
			m, err := v.end.Begin()
			return []wire.Message{m}, err
		}); err != nil {
			s.errorf("%s: %v", v.name, err)
		}
	}
	s.w.Settle()
}

// events looks at what was heard since the last time.
func (s *sea) events(b *simBoat) {
	for _, e := range b.take() {
		switch e := e.(type) {
		case wire.Rejected:
			s.errorf("%s cannot open something: %v", b.name, e.Err)
		case wire.Refused:
			if !runOut(&b.simEnd, e) {
				s.errorf("%s is refused: %s", b.name, e.Code)
			}
		case wire.Watched:
			if e.Count > 8 {
				s.errorf("%s is told of %d viewers", b.name, e.Count)
			}
		case wire.Received:
			s.errorf("%s gets %q, which nobody has sent", b.name, e.Plaintext)
		}
	}
	for _, v := range b.viewers {
		for _, e := range v.take() {
			switch e := e.(type) {
			case wire.BoatIs:
				if v.online != nil && *v.online == e.Online {
					s.errorf("%s is told again that the boat's being online is %v", v.name, e.Online)
				}
				v.online = &e.Online
			case wire.Rejected:
				s.errorf("%s cannot open something: %v", v.name, e.Err)
			case wire.Refused:
				switch {
				case runOut(&v.simEnd, e):
				case e.Code == wire.CodeLimit && len(b.viewers) > 8:
				case e.Code == wire.CodeBoatOffline: // it left while hs1 was on its way
				default:
					s.errorf("%s is refused: %s", v.name, e.Code)
				}
			case wire.Received:
				s.errorf("%s gets %q, which was not for it", v.name, e.Plaintext)
			}
		}
	}
}

// runOut says that a refusal is about a token that has run out.
func runOut(end *simEnd, e wire.Refused) bool {
	return e.Code == wire.CodeAuth && time.Now().After(end.latest().expires)
}

// checkSnapshot publishes some: each viewer gets them, once, in order.
func (s *sea) checkSnapshot(b *simBoat, watching []*simViewer) {
	var want []string
	for i := range 3 {
		want = append(want, fmt.Sprintf("snapshot %d.%d of %s", s.round, i, b.name))
		if err := b.say(func() ([]wire.Message, error) { return b.end.Publish([]byte(want[i])) }); err != nil {
			s.errorf("%s: %v", b.name, err)
		}
	}
	s.w.Settle()
	for _, v := range watching {
		var got []string
		for _, e := range v.take() {
			r, ok := e.(wire.Received)
			if !ok || r.Type != wire.Snapshot {
				s.errorf("%s gets %#v", v.name, e)
				continue
			}
			got = append(got, string(r.Plaintext))
		}
		if !slices.Equal(got, want) {
			s.errorf("%s gets %q", v.name, got)
		}
	}
}

// checkCommand sends a command: it arrives, and its outcome comes back, or the relay
// answers that it does not.
func (s *sea) checkCommand(b *simBoat, v *simViewer, online bool) {
	v.mu.Lock()
	secure := v.end.Secure()
	v.mu.Unlock()
	if v.proto < 2 || !secure {
		return
	}
	text := fmt.Sprintf("command %d of %s", s.round, v.name)
	if err := v.say(func() ([]wire.Message, error) {
		m, err := v.end.Command([]byte(text))
		return []wire.Message{m}, err
	}); err != nil {
		s.errorf("%s: %v", v.name, err)
		return
	}
	s.w.Settle()
	arrived := b.take()
	if !online || !v.ctl || b.proto < 2 {
		if got := v.take(); len(arrived) > 0 || len(got) != 1 {
			s.errorf("%s is answered with %#v; the boat gets %#v", v.name, got, arrived)
		} else if _, ok := got[0].(wire.Answered); !ok {
			s.errorf("%s is answered with %#v", v.name, got[0])
		}
		return
	}
	if len(arrived) != 1 {
		s.errorf("%s sends one command, %s gets %#v", v.name, b.name, arrived)
		return
	}
	r, ok := arrived[0].(wire.Received)
	if !ok || r.Type != wire.Command || string(r.Plaintext) != text {
		s.errorf("%s gets %#v", b.name, arrived[0])
		return
	}
	if err := b.say(func() ([]wire.Message, error) {
		m, err := b.end.Answer(r.Tag, []byte("done: "+text))
		return []wire.Message{m}, err
	}); err != nil {
		s.errorf("%s: %v", b.name, err)
	}
	s.w.Settle()
	got := v.take()
	if len(got) == 1 {
		if r, ok := got[0].(wire.Received); ok && r.Type == wire.Outcome && string(r.Plaintext) == "done: "+text {
			return
		}
	}
	s.errorf("%s gets %#v instead of the outcome", v.name, got)
}
