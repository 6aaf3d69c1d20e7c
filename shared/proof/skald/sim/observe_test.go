package sim

import (
	"testing"
	"time"
)

// A handler that is begun again when the message it was given has expired posts it all
// the same, without having read it from the mailbox: that is no fault. Another message
// that has expired it must not post.
func TestOwnMessageMayExpireUnderWay(t *testing.T) {
	for _, own := range []bool{true, false} {
		s := newSim(1, &Options{Store: Mem()}, nil)
		p := &peer{sim: s, name: "phone"}
		k := s.dial(p, asAgent)
		k.lane = "lane"
		l := s.ghost.lane(k.lane)
		l.peer = p
		m, other := newMessage(0, p, p, false, 60), newMessage(1, p, p, false, 60)
		l.entries[7] = &entry{lane: l, seq: 7, msg: m, expires: s.now().Add(-time.Second)}
		h := s.task("frame", newProcess(&instance{}), k)
		h.ev = &upEvent{msg: other}
		if own {
			h.ev.msg = m
		}
		s.findEntry(h, k, &downFrame{data: m.ciphertext, mark: 7}, true)
		if (s.failure == nil) != own {
			t.Errorf("own %t: %v", own, s.failure)
		}
	}
}
