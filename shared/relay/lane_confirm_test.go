package relay_test

import (
	"context"
	"testing"
	"time"
)

// A phone confirms a message while the clock is ahead, so that the message has expired by
// then. When the clock is set back, the message neither fills the mailbox nor comes again.
func TestConfirmedWhileTheClockIsAhead(t *testing.T) {
	for _, c := range []struct {
		name string
		said []string // the first is said before the clock is set ahead
	}{
		{"alone", []string{"one"}},
		{"with others that have not expired", []string{"one", "two", "three"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t)
			limits := s.r.Limits()
			limits.MailboxCap = int64(len(c.said))
			s.r.SetLimits(limits)
			agent, phone := s.home()
			lane := s.member(t, 1).Lane
			s.says(agent, 1, c.said[0])
			s.now = s.now.Add(8 * 24 * time.Hour)
			for _, words := range c.said[1:] {
				s.says(agent, 1, words)
			}
			s.confirm(phone, len(c.said))
			s.now = s.start.Add(time.Hour)
			if left, err := s.table.Everything(context.Background(), "l/"+lane); err != nil || len(left) > 0 {
				t.Errorf("%d messages are back, %v", len(left), err)
			}
			s.says(agent, 1, "after")
			wantHeard(t, phone, append(c.said, "after")...)
			wantHeard(t, s.comes(1), "after")
		})
	}
}
