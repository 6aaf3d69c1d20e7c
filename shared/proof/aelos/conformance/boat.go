package conformance

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	wire "blindpost/shared/client/aelos"
)

// boat is a boat of an organisation, with whatever viewers it has.
type boat struct {
	t       *testing.T
	r       *relay
	org, id string
}

// boat makes one that nobody has heard of.
func (r *relay) boat(t *testing.T) *boat {
	n := r.number()
	return &boat{t: t, r: r, org: fmt.Sprint("org-", n), id: fmt.Sprint("boat-", n)}
}

func inAnHour() time.Time { return time.Now().Add(time.Hour) }

// mint makes a token.
func (b *boat) mint(c wire.Claims) string {
	b.t.Helper()
	token, err := wire.Mint(b.r.Secret, c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.r.secrets.Add("a token", []byte(token))
	return token
}

// hello opens a connection and says hello; the story goes on with the answer.
func (b *boat) hello(name string, proto int, role string, c wire.Claims, lines ...line) *peer {
	b.t.Helper()
	var l line
	if len(lines) > 0 {
		l = lines[0]
	}
	p := b.r.stranger(b.t, name, l)
	p.role.Store(role)
	p.send(wire.Hello{Proto: proto, Role: role, Token: b.mint(c)})
	return p
}

// dial connects the boat. Who watches comes next.
func (b *boat) dial(lines ...line) *peer { b.t.Helper(); return b.dialProto(2, lines...) }

func (b *boat) dialProto(proto int, lines ...line) *peer {
	b.t.Helper()
	p := b.hello(b.id, proto, "boat", wire.BoatClaims(b.org, b.id, inAnHour()), lines...)
	p.wantWelcome(proto)
	return p
}

// dialAlone connects the boat when nobody watches. Whether it is told so at once
// is open.
func (b *boat) dialAlone(lines ...line) *peer { b.t.Helper(); return b.dialAloneProto(2, lines...) }

func (b *boat) dialAloneProto(proto int, lines ...line) *peer {
	b.t.Helper()
	p := b.dialProto(proto, lines...)
	p.settle()
	if len(p.roster) > 0 {
		b.t.Fatalf("%s is told of viewers that there are not", b.id)
	}
	return p
}

// settle reads viewers frames up to a pong.
func (p *peer) settle() {
	p.t.Helper()
	p.send(wire.Ping{})
	for {
		e := p.frame("viewers or pong")
		switch c := e.control.(type) {
		case wire.Pong:
			return
		case wire.Viewers:
			p.apply(c)
		default:
			p.instead("viewers or pong", e)
		}
	}
}

// viewer connects somebody who may look. What comes next is boat-status.
func (b *boat) viewer(lines ...line) *peer { b.t.Helper(); return b.viewerProto(2, lines...) }

func (b *boat) viewerProto(proto int, lines ...line) *peer {
	b.t.Helper()
	name := fmt.Sprint("viewer-", b.r.number())
	p := b.hello(name, proto, "viewer", wire.ViewerClaims(b.org, name, b.id, inAnHour()), lines...)
	p.wantWelcome(proto)
	return p
}

// controller connects somebody who may also send commands.
func (b *boat) controller(lines ...line) *peer { b.t.Helper(); return b.controllerProto(2, lines...) }

func (b *boat) controllerProto(proto int, lines ...line) *peer {
	b.t.Helper()
	name := fmt.Sprint("controller-", b.r.number())
	p := b.hello(name, proto, "viewer", wire.ControllerClaims(b.org, name, b.id, inAnHour()), lines...)
	p.wantWelcome(proto)
	return p
}

// watched connects the boat and a controller that watches it.
func (b *boat) watched() (ship, controller *peer, tag wire.Tag) {
	b.t.Helper()
	ship = b.dialAlone()
	controller = b.controller()
	controller.wantStatus(true)
	return ship, controller, ship.wantAttach(len(ship.roster) + 1)
}

// watch connects one more viewer.
func (b *boat) watch(ship *peer) (*peer, wire.Tag) {
	b.t.Helper()
	v := b.viewer()
	v.wantStatus(true)
	return v, ship.wantAttach(len(ship.roster) + 1)
}

// tagged and untagged are a frame on either side of the relay. To the relay, the
// counter and what follows are just bytes.
func tagged(t wire.Type, tag wire.Tag, counter uint64, body []byte) []byte {
	return append(wire.AppendTagged(nil, t, tag, counter), body...)
}

func untagged(t wire.Type, counter uint64, body []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{byte(t)}, counter), body...)
}
