package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	peer "blindpost/shared/client/aelos"
	"blindpost/shared/dialect/aelos"
)

// aelosDemo is the story of a boat, its owner ashore, a guest, and their relay.
type aelosDemo struct {
	*demoStory

	wire     *aelosWire
	boat     *aelosBoat
	ana, ben *aelosViewer

	// keys are those of boat, Ana and Ben, as the introducer knows them.
	keys [3]peer.KeyPair
}

// The names that stand in tokens.
const (
	aelosOrg   = "harbour-club"
	aelosBoat1 = "bianca"
)

func (d *aelosDemo) play(ctx context.Context) {
	defer d.close(ctx)
	d.tellChapters(ctx,
		d.openRelay,
		d.castOff,
		d.watch,
		d.anchor,
		d.guest,
		d.tunnel,
		d.away,
		d.viewersLeave,
		d.search,
	)
}

// openRelay starts the relay and makes what pairing would have made: the keys, and the
// secret that the minter of tokens shares with the relay.
func (d *aelosDemo) openRelay(ctx context.Context) error {
	d.chapter("A relay",
		"A boat lies in a marina, behind a network that nobody can connect to. So the boat dials out to a relay and stays there, and an app ashore dials out to the same relay. Here is one, in this process.")
	for i := range d.keys {
		var err error
		if d.keys[i], err = peer.GenerateKeyPair(rand.Reader); err != nil {
			return d.check(err, "keys are drawn")
		}
	}
	if err := d.startRelay(ctx, aelos.Path); err != nil {
		return err
	}
	d.wire = &aelosWire{url: d.relay.url(aelos.Path)}
	expired, err := d.token(peer.BoatClaims(aelosOrg, aelosBoat1, time.Now().Add(-time.Hour)))
	if err != nil {
		return d.check(err, "tokens are made")
	}
	forged, err := peer.Mint([]byte(hex.EncodeToString(make([]byte, 32))), peer.BoatClaims(aelosOrg, aelosBoat1, time.Now().Add(time.Hour)))
	if err != nil {
		return d.check(err, "tokens are made")
	}
	d.tell("A backend that both sides trust gives out tokens, signed with a secret that it shares with the relay. It also tells boat and app each other's public key. The relay never sees a key.")
	_ = d.check(errors.Join(d.refused(ctx, "an expired token", expired), d.refused(ctx, "a forged token", forged)),
		"with an expired or a forged token it lets nobody in")
	return nil
}

// token signs a token as the backend would.
func (d *aelosDemo) token(c peer.Claims) (string, error) {
	return peer.Mint([]byte(d.relay.minter), c)
}

// refused says hello with a token that the relay must refuse.
func (d *aelosDemo) refused(ctx context.Context, what, token string) error {
	return d.within(ctx, func(ctx context.Context) error {
		p := &aelosEnd{wire: d.wire, events: newDemoEvents()}
		machine := peer.NewBoat(peer.BoatConfig{Random: rand.Reader})
		p.receive = machine.Receive
		if err := p.dial(ctx, d.client(nil), machine.Hello, token); err != nil {
			return err
		}
		defer p.hangUp()
		r, err := awaitEvent[peer.Refused](ctx, p.events, "the refusal of "+what, nil)
		if err == nil && r.Code != peer.CodeAuth {
			err = fmt.Errorf("%s is refused with %q", what, r.Code)
		}
		return err
	})
}

// client is the HTTP client that opens connections, through n if it is set.
func (d *aelosDemo) client(n *network) *http.Client {
	t := &http.Transport{TLSClientConfig: d.relay.trusted()}
	if n != nil {
		t.DialContext = n.dial
	}
	return &http.Client{Transport: t}
}

// close ends what still runs.
func (d *aelosDemo) close(ctx context.Context) {
	if err := errors.Join(d.boat.close(), d.ana.close(), d.ben.close()); err != nil {
		d.screen.warn("demo: %v", err)
	}
	d.stopRelay(ctx)
}
