package relay_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// A group that cannot be swept does not stop the sweep of the others, is reported, and is
// tried again by the next sweep.
func TestSweepGoesOnAfterAFailure(t *testing.T) {
	s := begin(t)
	var owners []*line
	for i := range actors { // each with a namespace of its own
		l := s.connect()
		s.frame(l, marshal(actors[i].auth(0, l.nonce, nil)), false)
		owners = append(owners, l)
	}
	for _, l := range owners {
		s.disconnect(l)
	}
	s.now = s.now.Add(7*24*time.Hour + time.Minute)
	items, err := s.table.Everything(context.Background(), "due")
	if err != nil || len(items) != len(actors) {
		t.Fatalf("%d groups are due, %v", len(items), err)
	}
	first := items[0].Attrs["g"].Str()
	s.table.Before = func(step relay.Step) error {
		if step.Read && step.Key == relay.GroupItem(first, "root") {
			return errTrouble
		}
		return nil
	}
	err = s.r.Sweep(context.Background())
	if !errors.Is(err, errTrouble) || !strings.Contains(err.Error(), relay.ShortGroup(first)) || strings.Contains(err.Error(), first) {
		t.Errorf("the sweep says %v", err)
	}
	left, _ := s.table.Everything(context.Background(), relay.GroupPrefix)
	for _, it := range left {
		if it.Key.Partition != relay.GroupPrefix+first {
			t.Errorf("%s of another group is left", it.Key.Sort)
		}
	}
	if len(left) == 0 {
		t.Error("nothing has failed")
	}
	s.table.Before = nil
	s.handled("the next sweep", s.r.Sweep(context.Background()))
	if left, _ = s.table.Everything(context.Background(), ""); len(left) > 0 {
		t.Errorf("%s is left", left[0].Key.Partition)
	}
}

// A sweep does not report thousands of errors one by one.
func TestSweepBoundsItsReport(t *testing.T) {
	s := begin(t)
	for i := range 200 {
		op := relay.DueOp(s.now.Add(-time.Duration(i)*time.Second), "skald/"+strings.Repeat("0", 63)+string(rune('a'+i%26)))
		if _, err := s.table.Write(context.Background(), op); err != nil {
			t.Fatal(err)
		}
	}
	s.table.Before = func(step relay.Step) error {
		if step.Read && strings.HasPrefix(step.Key.Partition, relay.GroupPrefix) {
			return errTrouble
		}
		return nil
	}
	err := s.r.Sweep(context.Background())
	if lines := strings.Count(err.Error(), "\n") + 1; lines != 11 || !strings.HasSuffix(err.Error(), "failed to sweep 190 more") {
		t.Errorf("%d lines: %v", lines, err)
	}
}

// When a group could not be looked at, its other members are looked at all the same
// the next time: the note for the sweeper is there before the join.
func TestJoinIsNotedBeforeItIsDone(t *testing.T) {
	s := begin(t, distributed)
	_, phone := s.home()
	s.disconnect(phone)
	s.later(time.Hour)
	var steps []string
	s.table.Before = func(step relay.Step) error {
		switch {
		case step.Read:
		case step.Ops[0].Key.Partition == "due":
			steps = append(steps, "note")
		case step.Touches(memberItem(1)) && step.Ops[0].Set["conn"].Kind() == table.KindString:
			steps = append(steps, "join")
		}
		return nil
	}
	s.comes(1)
	if strings.Join(steps, " ") != "note join" {
		t.Errorf("the steps are %v", steps)
	}
}
