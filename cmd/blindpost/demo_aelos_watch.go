package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	peer "blindpost/shared/client/aelos"
)

// castOff connects the boat, which has no viewers yet.
func (d *aelosDemo) castOff(ctx context.Context) error {
	d.chapter("A boat without viewers", "The boat dials out to the relay and stays connected. It publishes only while it has viewers, and it has none yet.")
	boat, err := newAelosBoat(d)
	if err == nil {
		d.boat = boat
		err = d.within(ctx, d.boatConnects)
	}
	if d.check(err, "the relay lets the boat in") != nil {
		return err
	}
	d.boat.sail()
	_ = d.check(d.within(ctx, d.boat.quiet), "its instruments are running, and it sends nothing")
	return nil
}

// boatConnects opens a connection of the boat, and waits for its welcome.
func (d *aelosDemo) boatConnects(ctx context.Context) error {
	claims := peer.BoatClaims(aelosOrg, aelosBoat1, time.Now().Add(24*time.Hour))
	return d.enter(ctx, d.boat.aelosEnd, d.client(d.boat.net), d.boat.boat.Hello, claims)
}

// enter opens a connection, says hello with a token for the claims, and waits for the
// welcome.
func (d *aelosDemo) enter(ctx context.Context, e *aelosEnd, client *http.Client, hello func(token string) peer.Message, c peer.Claims) error {
	token, err := d.token(c)
	if err != nil {
		return err
	}
	if err := e.dial(ctx, client, hello, token); err != nil {
		return err
	}
	_, err = awaitEvent[peer.Welcomed](ctx, e.events, "a welcome", nil)
	return err
}

// viewerConnects opens a connection of a viewer and waits for its welcome and for
// news of the boat.
func (d *aelosDemo) viewerConnects(ctx context.Context, v *aelosViewer, c peer.Claims) (online bool, err error) {
	if err := d.enter(ctx, v.aelosEnd, d.client(nil), v.viewer.Hello, c); err != nil {
		return false, err
	}
	is, err := awaitEvent[peer.BoatIs](ctx, v.events, "whether the boat is there", nil)
	return is.Online, err
}

// watched waits until the boat is told that it has n viewers.
func (b *aelosBoat) watched(ctx context.Context, n int) error {
	_, err := awaitEvent(ctx, b.events, fmt.Sprintf("news of %s", count(n, "viewer")), func(w peer.Watched) bool { return w.Count == n })
	return err
}

// watch lets Ana look at the instruments.
func (d *aelosDemo) watch(ctx context.Context) error {
	d.chapter("A viewer", "Ana, the owner, opens the app ashore. The relay tells her that the boat is there, and tells the boat that it has a viewer. App and boat shake hands through the relay: each proves that it has the key that the backend knows of, and they agree on keys for this session.")
	d.ana = newAelosViewer(d, "Ana", d.keys[1])
	err := d.within(ctx, func(ctx context.Context) error {
		online, err := d.viewerConnects(ctx, d.ana, peer.ControllerClaims(aelosOrg, "ana", aelosBoat1, time.Now().Add(time.Hour)))
		if err == nil && !online {
			err = errors.New("she is told that it is away")
		}
		return err
	})
	if d.check(err, "Ana is let in and told that the boat is there") != nil {
		return err
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error { return d.boat.watched(ctx, 1) }), "the boat is told that it has one viewer")
	err = d.within(ctx, func(ctx context.Context) error {
		s, err := awaitEvent[peer.Secured](ctx, d.boat.events, "a handshake", nil)
		if err == nil && s.App != d.keys[1].Public {
			err = errors.New("the handshake is that of another app")
		}
		if err == nil {
			_, err = awaitEvent[peer.Secured](ctx, d.ana.events, "the boat's answer", nil)
		}
		return err
	})
	if d.check(err, "boat and app have a session, each sure of the other") != nil {
		return err
	}
	var depth float64
	err = d.within(ctx, func(ctx context.Context) error {
		s, err := d.ana.instruments(ctx)
		if err == nil {
			depth, err = s.depth()
		}
		return err
	})
	return d.check(err, "Ana sees the instruments: %.1f m of water under the keel", depth)
}

// anchor lets Ana give commands.
func (d *aelosDemo) anchor(ctx context.Context) error {
	d.chapter("The anchor watch", "Ana may give commands: her token says so. What she can ask for is a short list about the anchor; there is no command to steer.")
	var out aelosOutcome
	err := d.within(ctx, func(ctx context.Context) (err error) {
		if out, err = d.ana.ask(ctx, "anchor/arm", 35); err == nil && !out.OK {
			err = errors.New(out.Message)
		}
		return err
	})
	_ = d.check(err, "Ana arms it, and the boat answers: %q", out.Message)
	err = d.within(ctx, func(ctx context.Context) (err error) {
		if out, err = d.ana.ask(ctx, "steer", 0); err == nil && out.OK {
			err = errors.New("it did something")
		}
		return err
	})
	_ = d.check(err, "she asks for something else, and the boat refuses: %q", out.Message)
	return nil
}

// guest lets Ben watch. He may not give commands.
func (d *aelosDemo) guest(ctx context.Context) error {
	d.chapter("A guest", "Ben may look but give no commands: his token says so.")
	d.ben = newAelosViewer(d, "Ben", d.keys[2])
	err := d.within(ctx, func(ctx context.Context) error {
		if _, err := d.viewerConnects(ctx, d.ben, peer.ViewerClaims(aelosOrg, "ben", aelosBoat1, time.Now().Add(time.Hour))); err != nil {
			return err
		}
		if err := d.boat.watched(ctx, 2); err != nil {
			return err
		}
		_, err := d.ben.instruments(ctx)
		return err
	})
	if d.check(err, "Ben sees the instruments too; the boat is told that it has two viewers") != nil {
		return err
	}
	_ = d.check(d.notForBen(), "what was sealed for Ana does not open with Ben's keys, should the relay mix them up")
	err = d.within(ctx, func(ctx context.Context) error {
		if _, err := d.ben.order("anchor/disarm", 0); err != nil {
			return err
		}
		if _, err := awaitEvent[peer.Answered](ctx, d.ben.events, "the relay's refusal", nil); err != nil {
			return err
		}
		if err := d.boat.settled(ctx); err != nil {
			return err
		}
		if d.boat.times("anchor/disarm") > 0 {
			return errors.New("the boat has got it")
		}
		return nil
	})
	_ = d.check(err, "Ben tries to disarm the anchor watch: the relay refuses it and the boat never hears of it")
	return nil
}

// notForBen gives Ben a message that the relay carried for Ana.
func (d *aelosDemo) notForBen() error {
	d.ana.mu.Lock()
	hers := d.ana.last
	d.ana.mu.Unlock()
	d.ben.mu.Lock()
	defer d.ben.mu.Unlock()
	_, e, err := d.ben.viewer.Receive(hers)
	if err != nil {
		return err
	}
	if r, ok := e.(peer.Rejected); !ok || !errors.Is(r.Err, peer.ErrForged) {
		return fmt.Errorf("it is %T", e)
	}
	return nil
}
