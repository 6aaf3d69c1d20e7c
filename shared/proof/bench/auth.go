package bench

import (
	"crypto/rand"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

// agents makes identities, each of which owns a namespace as an agent.
func (f *fleet) agents(n int) ([]*skaldclient.Identity, error) {
	ids := make([]*skaldclient.Identity, n)
	err := f.each(n, openers, func(i int) (err error) {
		ids[i], err = skaldclient.GenerateIdentity(rand.Reader)
		return err
	})
	return ids, err
}

// enterAll connects all agents, some at a time.
func (f *fleet) enterAll(ids []*skaldclient.Identity, atATime int) ([]*conn, error) {
	conns := make([]*conn, len(ids))
	err := f.each(len(ids), atATime, func(i int) (err error) {
		conns[i], err = f.enter(skaldclient.AgentAuth(ids[i]))
		return err
	})
	return conns, err
}

func (f *fleet) leaveAll(conns []*conn) error {
	return f.each(len(conns), openers, func(i int) error {
		f.leave(conns[i])
		return nil
	})
}

// authRate measures connections that are opened and authenticated per second: TCP,
// TLS if the relay has it, upgrade, challenge, signature, AuthOk. The agents are
// known to the relay. They all connect, one round; they all leave, which is not
// measured; and again, until the rounds have taken as long as is to be measured.
func (f *fleet) authRate(relay Relay, what string, agents int, measure time.Duration) (n uint64, l lap, err error) {
	ids, err := f.agents(agents)
	if err != nil {
		return 0, lap{}, err
	}
	conns, err := f.enterAll(ids, rush) // they become known, and everything warm
	if err != nil {
		return 0, lap{}, err
	}
	if err := f.leaveAll(conns); err != nil {
		return 0, lap{}, err
	}
	done := relay.Measuring(what, measure)
	defer done()
	for l.took < measure {
		watch := startPart(relay)
		conns, err := f.enterAll(ids, rush)
		round := watch.stop()
		if err != nil {
			return 0, lap{}, err
		}
		n += uint64(len(conns))
		l.took += round.took
		l.cpu += round.cpu
		if err := f.leaveAll(conns); err != nil {
			return 0, lap{}, err
		}
	}
	return n, l, nil
}
