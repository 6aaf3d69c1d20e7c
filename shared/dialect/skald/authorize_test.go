package skald

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"blindpost/shared/relay"
	"blindpost/shared/table"
)

func TestPlanAuthorize(t *testing.T) {
	household := []*relay.Member{
		{Key: "agent", Role: roleAgent},
		{Key: "old", Role: roleClient, State: stateAuthorised},
		{Key: "new", Role: roleClient, State: statePending},
		{Key: "other", Role: roleClient, State: stateAuthorised},
	}
	for i, m := range household {
		m.Group, m.Lane, m.Epoch = "skald/ns", fmt.Sprint("lane", i), int64(i)
	}
	for _, c := range []struct {
		name    string
		wanted  []string
		revoke  []string
		promote []string
		count   uint32
	}{
		{"nobody: the authorised are revoked, who is pending stays pending", nil, []string{"old", "other"}, nil, 0},
		{"as it is", []string{"old", "other"}, nil, nil, 2},
		{"one more", []string{"old", "other", "new"}, nil, []string{"new"}, 3},
		{"one for another", []string{"new", "other"}, []string{"old"}, []string{"new"}, 2},
		{"strangers do not count", []string{"old", "other", "stranger"}, nil, nil, 2},
		{"nor does the agent", []string{"agent"}, []string{"old", "other"}, nil, 0},
	} {
		wanted := map[string]bool{}
		for _, k := range c.wanted {
			wanted[k] = true
		}
		p := planAuthorize(household, wanted)
		var revoke, promote []string
		for _, m := range p.revoke {
			revoke = append(revoke, m.Key)
		}
		for _, op := range p.promote {
			promote = append(promote, op.Key.Sort[len("m/"):])
			if op.Action != table.Update || op.Set["st"].Str() != stateAuthorised || len(op.Set) != 1 || len(op.Conds) == 0 {
				t.Errorf("%s: the operation %+v does not promote", c.name, op)
			}
		}
		if !slices.Equal(revoke, c.revoke) || !slices.Equal(promote, c.promote) || p.authorised != c.count {
			t.Errorf("%s: revokes %v, promotes %v, counts %d", c.name, revoke, promote, p.authorised)
		}
	}
}

func TestPairingTTL(t *testing.T) {
	defaults := DefaultLimits()
	own := defaults
	own.PairingTTL, own.PairingTTLMax = 20*time.Second, 40*time.Second
	odd := defaults
	odd.PairingTTL, odd.PairingTTLMax = 0, 0
	for _, c := range []struct {
		limits  Limits
		seconds uint32
		want    time.Duration
	}{
		{defaults, 0, 300 * time.Second},
		{defaults, 1, time.Second},
		{defaults, 300, 300 * time.Second},
		{defaults, 600, 600 * time.Second},
		{defaults, 601, 600 * time.Second},
		{defaults, 1<<32 - 1, 600 * time.Second},
		{own, 0, 20 * time.Second},
		{own, 30, 30 * time.Second},
		{own, 41, 40 * time.Second},
		{odd, 0, time.Second},
		{odd, 100, time.Second},
	} {
		d := New(nil, Options{Limits: c.limits})
		if got := d.pairingTTL(c.seconds); got != c.want {
			t.Errorf("%d seconds become %v, want %v", c.seconds, got, c.want)
		}
	}
}
