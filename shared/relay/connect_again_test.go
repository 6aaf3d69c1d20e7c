package relay_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// knock runs a Connect, for the first time or again. It returns the nonce of the
// challenge, nil if there is none.
func (s *stage) knock(t *testing.T, id gateway.Conn) (nonce []byte, status int, err error) {
	t.Helper()
	res, err := s.r.Connect(context.Background(), gateway.ConnectEvent{
		Conn: id, Path: skald.Path, RemoteIP: netip.MustParseAddr("192.0.2.1"), At: s.now,
	})
	if err != nil || len(res.First) == 0 {
		return nil, res.Status, err
	}
	f := new(skaldpb.RelayFrame)
	if len(res.First) != 1 || proto.Unmarshal(res.First[0].Data, f) != nil {
		t.Errorf("the first frames are %v", res.First)
	}
	return f.GetChallenge().GetNonce(), res.Status, nil
}

func distributedStage(limit int64) *stage {
	s := newStage(func(o *relay.Options) { o.Distributed, o.Limits.ConnectionsPerIP = true, limit })
	s.reset()
	return s
}

// The answer of a Connect is lost, and the front asks again: a peer may have signed the
// first challenge by then.
func TestConnectAgain(t *testing.T) {
	s := distributedStage(2)
	l := s.connect()
	for range 3 {
		nonce, _, err := s.knock(t, l.id)
		if err != nil || !bytes.Equal(nonce, l.nonce) {
			t.Fatalf("challenge %x after %x, %v", nonce, l.nonce, err)
		}
	}
	s.frame(l, marshal(actors[0].auth(0, l.nonce, nil)), false)
	if len(l.got) != 1 || l.got[0].GetAuthOk() == nil {
		t.Fatalf("the signed challenge is answered with %v", l.got)
	}
	// A run that was held up until now changes nothing.
	if nonce, status, err := s.knock(t, l.id); err != nil || status/100 > 2 || nonce != nil {
		t.Errorf("challenge %x, status %d, %v", nonce, status, err)
	}
	s.frame(l, marshal(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}}), false)
	if n := len(l.got); n != 2 || l.got[1].GetPresenceList() == nil {
		t.Errorf("no longer admitted: %v", l.got)
	}
	// The address was counted once for all of that.
	s.connect()
	if _, status, err := s.knock(t, "c9"); err != nil || status != 429 {
		t.Errorf("status %d, %v", status, err)
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
}

// Two runs of one Connect go on side by side, or one loses the answer to its write: they
// agree on a challenge.
func TestConnectTwiceAtOnce(t *testing.T) {
	for _, lost := range []bool{false, true} {
		s := distributedStage(0)
		record := relay.ConnPartition + "c1"
		var other []byte
		trouble := errors.New("the answer was lost")
		s.table.Before = func(p relay.Step) error {
			if lost || p.Read || p.Ops[0].Key.Partition != record {
				return nil
			}
			s.table.Before = nil
			var err error
			if other, _, err = s.knock(t, "c1"); err != nil {
				t.Error(err)
			}
			return nil
		}
		s.table.After = func(p relay.Step) error {
			if !lost || p.Read || p.Ops[0].Key.Partition != record || p.Ops[0].Action != table.Put {
				return nil
			}
			s.table.After = nil
			return trouble
		}
		nonce, _, err := s.knock(t, "c1")
		if lost {
			if !errors.Is(err, trouble) {
				t.Fatalf("%v", err)
			}
			nonce, _, err = s.knock(t, "c1")
			if err == nil {
				other, _, err = s.knock(t, "c1")
			}
		}
		if err != nil || nonce == nil || !bytes.Equal(nonce, other) {
			t.Errorf("lost %v: challenges %x and %x, %v", lost, nonce, other, err)
		}
		l := &line{id: "c1", nonce: nonce, number: 1}
		s.front.n, s.front.conns[l.id] = 1, l
		s.frame(l, marshal(actors[0].auth(0, nonce, nil)), false)
		if len(l.got) != 1 || l.got[0].GetAuthOk() == nil {
			t.Errorf("lost %v: answered with %v", lost, l.got)
		}
	}
}
