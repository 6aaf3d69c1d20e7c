package conformance

import (
	"fmt"
	"testing"
	"time"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/proof/tcpproxy"
)

// home is one device with an address.
type home struct {
	t       *testing.T
	r       *relay
	name    string
	device  *peer.Device
	address string
	fid     string // "" for no push registration
}

// newDevice makes a device that the relay does not know.
func (r *relay) newDevice(at *peer.Relay) *peer.Device {
	d := peer.NewDevice(at, time.Now())
	r.secrets.AddToken("a device token", d.Token)
	return d
}

// home makes a device known to the relay that can be paired with.
func (r *relay) home(t *testing.T) *home {
	t.Helper()
	h := &home{t: t, r: r, name: fmt.Sprintf("device%d", r.serial.Add(1)), device: r.newDevice(r.at), address: peer.NewAddress()}
	must(t, h.device.Claim(soon(t)))
	must(t, h.device.SetAddress(soon(t), h.address))
	must(t, h.device.SetPairing(soon(t), true))
	return h
}

// must fails the test for an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// registerPush gives the device a push registration.
func (h *home) registerPush() {
	h.t.Helper()
	h.fid = "fid-" + peer.TokenOf(12)
	must(h.t, h.device.SetPush(soon(h.t), h.fid))
}

// dial connects the device; what the relay says comes next.
func (h *home) dial(over ...*tcpproxy.Proxy) *end {
	h.t.Helper()
	device := *h.device
	if len(over) > 0 {
		device.Relay = h.r.over(over[0])
	}
	conn, err := device.Dial(soon(h.t), peer.Options{})
	if err != nil {
		h.t.Fatalf("%s: %v", h.name, err)
	}
	return h.r.newEnd(h.t, h.name, peer.DeviceRole, conn)
}

// open connects the device and wants what waits for it: these frames and no others.
func (h *home) open(waiting ...peer.Frame) *end {
	h.t.Helper()
	dv := h.dial()
	dv.wantOpening(h.fid != "", waiting...)
	return dv
}

func (e *end) wantOpening(registered bool, waiting ...peer.Frame) {
	e.t.Helper()
	state := "missing"
	if registered {
		state = "registered"
	}
	e.want(peer.Frame{Type: peer.PushRegistration, State: state})
	e.want(waiting...)
	e.want(peer.Frame{Type: peer.CaughtUp})
}

// member is a client of a home.
type member struct {
	*peer.Client
	h    *home
	name string
}

// newMember makes a client that the relay does not know.
func (h *home) newMember() *member {
	m := &member{peer.NewClient(h.r.at, h.address, time.Now()), h, fmt.Sprintf("client%d", h.r.serial.Add(1))}
	m.DeviceID = h.device.ID
	h.r.secrets.AddToken("a client token", m.Token)
	return m
}

// end makes an end of a connection of the client.
func (m *member) end(conn *peer.Conn, err error) *end {
	m.h.t.Helper()
	if err != nil {
		m.h.t.Fatalf("%s: %v", m.name, err)
	}
	e := m.h.r.newEnd(m.h.t, m.name, peer.ClientRole, conn)
	e.barrier.ClientID = m.ID
	return e
}

// dial opens an authenticated connection.
func (m *member) dial(over ...*tcpproxy.Proxy) *end {
	m.h.t.Helper()
	client := *m.Client
	if len(over) > 0 {
		client.Relay = m.h.r.over(over[0])
	}
	return m.end(client.Dial(soon(m.h.t), peer.Options{}))
}

// dialPairing opens an initial-pairing connection.
func (m *member) dialPairing() *end {
	m.h.t.Helper()
	e := m.end(m.DialPairing(soon(m.h.t), peer.Options{}))
	e.barrier = peer.Frame{Type: peer.Resume, ClientID: m.ID, RequestID: m.ID}
	return e
}

// stateFrame is what the relay says about the client's state.
func (m *member) stateFrame(state string) peer.Frame {
	return peer.Frame{Type: peer.ClientState, ClientID: m.ID, State: state}
}

// set makes the device set the client's state.
func (m *member) set(dv *end, state string) {
	m.h.t.Helper()
	delete(dv.seen, keyOf(m.stateFrame(state)))
	dv.send(peer.Frame{Type: peer.SetClientState, ClientID: m.ID, State: state})
	dv.want(m.stateFrame(state))
}

// introduce brings a client as far as being pending: its request is with the device.
// The connection stays open.
func (h *home) introduce(dv *end) (*member, *end, *deal) {
	h.t.Helper()
	m := h.newMember()
	dv.mayGet(m.stateFrame("pending"))
	c := m.dialPairing()
	x := m.pairing()
	x.publish(c)
	x.deliver(dv, c)
	return m, c, x
}

// pair makes a client that is active, by the whole ceremony.
func (h *home) pair(dv *end) *member {
	h.t.Helper()
	m, c, x := h.introduce(dv)
	m.set(dv, "active")
	x.answer(dv)
	x.receive(c, dv)
	x.complete(c)
	x.finish(dv, c)
	c.close()
	return m
}

// couple is the usual beginning: a device and one client of it, both connected.
func (r *relay) couple(t *testing.T) (h *home, dv *end, m *member, c *end) {
	t.Helper()
	h = r.home(t)
	dv = h.open()
	m = h.pair(dv)
	return h, dv, m, m.dial()
}

// waiting is a client that is connected, with a request that waits for its device, which
// is not.
func (r *relay) waiting(t *testing.T) (h *home, m *member, c *end, x *deal) {
	t.Helper()
	h, dv, m, c := r.couple(t)
	dv.close()
	x = m.deal()
	x.publish(c)
	return h, m, c, x
}
