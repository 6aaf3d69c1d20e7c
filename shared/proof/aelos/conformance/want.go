package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/coder/websocket"

	wire "blindpost/shared/client/aelos"
)

// frame takes the next frame, which has to be there and well-formed.
func (p *peer) frame(what string) event {
	p.t.Helper()
	e, err := p.next(patience)
	switch {
	case err != nil:
		p.t.Fatalf("%s wants %s: %v", p.name, what, err)
	case e.end != nil:
		p.instead(what, e)
	case e.fault != nil:
		p.t.Fatalf("%s wants %s, gets %v: %v", p.name, what, e, e.fault)
	}
	return e
}

// instead fails because the frame is another one.
func (p *peer) instead(what string, e event) {
	p.t.Helper()
	p.t.Fatalf("%s wants %s, gets %v%s", p.name, what, e, p.unread())
}

// wantControl takes the next frame, which has to be a control frame of a kind.
func wantControl[C wire.Control](p *peer) C {
	p.t.Helper()
	var none C
	e := p.frame(fmt.Sprintf("%T", none))
	c, ok := e.control.(C)
	if !ok {
		p.instead(fmt.Sprintf("%T", none), e)
	}
	return c
}

func (p *peer) wantWelcome(proto int) {
	p.t.Helper()
	if c := wantControl[wire.Welcome](p); c.Proto != proto {
		p.t.Fatalf("%s wants proto %d, is welcomed to %d", p.name, proto, c.Proto)
	}
}

func (p *peer) wantError(codes ...string) {
	p.t.Helper()
	if c := wantControl[wire.Error](p); !slices.Contains(codes, c.Code) {
		p.t.Fatalf("%s wants error %v, gets %q", p.name, codes, c.Code)
	}
}

// wantRefusal wants an error and the end of the connection.
func (p *peer) wantRefusal(codes ...string) {
	p.t.Helper()
	p.wantError(codes...)
	p.wantClosed()
}

// wantClosed wants the relay to have closed the connection, nothing before that,
// and on a front with close codes, with one.
func (p *peer) wantClosed() websocket.StatusCode {
	p.t.Helper()
	e, err := p.next(patience)
	switch {
	case err != nil:
		p.t.Fatalf("%s wants to be hung up on: %v", p.name, err)
	case e.end == nil:
		p.instead("to be hung up on", e)
	}
	var farewell websocket.CloseError
	if !errors.As(e.end, &farewell) && p.r.CloseCodes {
		p.t.Fatalf("%s wants a close frame, gets: %v", p.name, e.end)
	}
	return farewell.Code
}

// wantEnd wants the connection to be over, in whatever way, after errors of
// whatever code.
func (p *peer) wantEnd() {
	p.t.Helper()
	for {
		e, err := p.next(patience)
		if err != nil {
			p.t.Fatalf("%s wants the end of the connection: %v", p.name, err)
		}
		if e.end != nil {
			return
		}
		if _, ok := e.control.(wire.Error); !ok {
			p.instead("the end of the connection", e)
		}
	}
}

// wantNothing is the barrier: the relay has handled what this peer sent, and has
// sent it nothing that the story has not asked for yet.
func (p *peer) wantNothing() {
	p.t.Helper()
	p.send(wire.Ping{})
	wantControl[wire.Pong](p)
}

func (p *peer) wantStatus(online bool) {
	p.t.Helper()
	if c := wantControl[wire.BoatStatus](p); c.Online != online {
		p.t.Fatalf("%s is told that the boat's being online is %v", p.name, c.Online)
	}
}

// viewers takes the next frame, which has to be viewers.
func (p *peer) viewers() wire.Viewers {
	p.t.Helper()
	c := wantControl[wire.Viewers](p)
	p.apply(c)
	return c
}

// apply brings the roster up to date and checks count against names.
func (p *peer) apply(c wire.Viewers) {
	p.t.Helper()
	for _, s := range c.Attach {
		tag := tagOf(s)
		if slices.Contains(p.roster, tag) {
			p.t.Fatalf("%s is told that %s attaches, again", p.name, s)
		}
		p.roster = append(p.roster, tag)
	}
	for _, s := range c.Detach {
		i := slices.Index(p.roster, tagOf(s))
		if i < 0 && !p.told {
			continue // since the last frame, which an earlier connection got
		}
		if i < 0 {
			p.t.Fatalf("%s is told that %s detaches, who was not attached", p.name, s)
		}
		p.roster = slices.Delete(p.roster, i, i+1)
	}
	p.told = true
	if c.Count != len(p.roster) {
		p.t.Fatalf("%s is told of %d viewers, but of %d by name", p.name, c.Count, len(p.roster))
	}
}

func tagOf(s string) wire.Tag {
	tag, _ := wire.ParseTag(s) // was checked when it was read
	return tag
}

// wantAttach wants the news that one viewer has come, which makes them count.
func (p *peer) wantAttach(count int) wire.Tag {
	p.t.Helper()
	c := p.viewers()
	if c.Count != count || len(c.Attach) != 1 || len(c.Detach) != 0 {
		p.t.Fatalf("%s wants one to attach and make %d, gets %+v", p.name, count, c)
	}
	return tagOf(c.Attach[0])
}

// wantDetach wants the news that this viewer has gone, which makes them count.
func (p *peer) wantDetach(tag wire.Tag, count int) {
	p.t.Helper()
	c := p.viewers()
	if c.Count != count || len(c.Attach) != 0 || len(c.Detach) != 1 || tagOf(c.Detach[0]) != tag {
		p.t.Fatalf("%s wants %s to detach and leave %d, gets %+v", p.name, tag, count, c)
	}
}

// wantRoster wants to be told of exactly these, in whatever order.
func (p *peer) wantRoster(tags ...wire.Tag) {
	p.t.Helper()
	p.viewers()
	for len(p.roster) < len(tags) {
		p.viewers()
	}
	got, want := slices.Clone(p.roster), slices.Clone(tags)
	order := func(a, b wire.Tag) int { return bytes.Compare(a[:], b[:]) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		p.t.Fatalf("%s wants to hear of %v, hears of %v", p.name, want, got)
	}
}

// wantPayload wants exactly these bytes in a binary message.
func (p *peer) wantPayload(frame []byte) {
	p.t.Helper()
	what := fmt.Sprintf("a payload of %d bytes, %.24x", len(frame), frame)
	e := p.frame(what)
	if e.message.Text || !bytes.Equal(e.message.Data, frame) {
		p.instead(what, e)
	}
}

// wantResult wants the relay's own answer to a command.
func (p *peer) wantResult() wire.Result {
	p.t.Helper()
	return wantControl[wire.Result](p) // its values were checked when it was read
}
