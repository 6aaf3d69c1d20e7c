package conformance

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// clientIdentifiers are the rows of "Identifiers", and the token.
var clientIdentifiers = []story{
	{Name: "ClientIdentifiers_AddressID", Tell: identifierAddress},
	{Name: "ClientIdentifiers_DeviceID", Tell: identifierDevice},
	{Name: "ClientIdentifiers_ClientID", Tell: identifierClient},
	{Name: "ClientIdentifiers_RequestID", Tell: identifierRequest},
	{Name: "ClientIdentifiers_RequestIDHasATime", Tell: identifierTime},
	{Name: "ClientToken", Tell: clientToken},
}

// wrongIDs are no canonical uppercase ULIDs.
func wrongIDs() map[string]string {
	id := newID()
	return map[string]string{
		"lower case":    strings.ToLower(id),
		"one too short": id[:25],
		"one too long":  id + "0",
		"I":             id[:25] + "I",
		"L":             id[:25] + "L",
		"O":             id[:25] + "O",
		"U":             id[:25] + "U",
		"too late":      "8" + id[1:],
		"all zeros":     strings.Repeat("0", 26),
		"no ASCII":      id[:24] + "É",
		"a UUID":        "0198d3f1-7a2b-7c3d-8e4f-5a6b7c8d9e0f",
	}
}

// wantRefused wants an upgrade to be refused with one of these statuses, in the form
// that the specification gives to refusals.
func (r *relay) wantRefused(t *testing.T, what string, c *peer.Conn, err error, statuses ...int) *peer.Refusal {
	t.Helper()
	if err == nil {
		c.Drop()
		t.Errorf("%s is let in", what)
		return &peer.Refusal{}
	}
	return r.wantRefusal(t, what, err, r.RefusalBodies, statuses...)
}

func (r *relay) wantRefusal(t *testing.T, what string, err error, hasBody bool, statuses ...int) *peer.Refusal {
	t.Helper()
	var no *peer.Refusal
	if !errors.As(err, &no) {
		t.Errorf("%s: %v", what, err)
		return &peer.Refusal{}
	}
	if !slices.Contains(statuses, no.Status) {
		t.Errorf("%s is refused with %d, not with %v", what, no.Status, statuses)
	}
	if hasBody && (no.Code == "" || no.Text == "") {
		t.Errorf("%s is refused without an error and a message: %.200q", what, no.Body)
	}
	if no.Retryable && no.Final() {
		t.Errorf("%s is refused with %d, and is to try again", what, no.Status)
	}
	if found := r.secrets.In(no.Body); found != "" {
		t.Errorf("%s: the refusal tells %s", what, found)
	}
	return no
}

// refuses dials a path and wants it to be refused.
func (r *relay) refuses(t *testing.T, what string, role peer.Role, path, token string, statuses ...int) *peer.Refusal {
	t.Helper()
	c, err := r.at.Dial(soon(t), role, path, token, peer.Options{})
	return r.wantRefused(t, what, c, err, statuses...)
}

func identifierAddress(t *testing.T, r *relay) {
	h := r.home(t)
	for what, id := range map[string]string{
		"upper case": strings.ToUpper("abcdef0123456789abcdef0123456789"), "too short": h.address[:31], "too long": h.address + "0",
		"no hex": h.address[:31] + "g", "a ULID": newID(),
	} {
		m := h.newMember()
		m.AddressID = id
		r.refuses(t, "an address that is "+what, peer.ClientRole, m.PairingPath(), m.Token, http.StatusBadRequest, http.StatusNotFound)
	}
	m := h.newMember()
	m.AddressID = peer.NewAddress()
	r.refuses(t, "an address that nobody has", peer.ClientRole, m.PairingPath(), m.Token, http.StatusNotFound)
}

func identifierDevice(t *testing.T, r *relay) {
	h, _, m, _ := r.couple(t)
	for what, id := range wrongIDs() {
		c := *m.Client
		c.DeviceID = id
		r.refuses(t, "a device whose id is "+what, peer.ClientRole, c.Path(), c.Token, http.StatusBadRequest, http.StatusNotFound)
		d := *h.device
		d.ID = id
		r.refuses(t, "a device that says its id is "+what, peer.DeviceRole, d.Path(), d.Token, http.StatusBadRequest, http.StatusNotFound)
	}
}

func identifierClient(t *testing.T, r *relay) {
	h, _, m, _ := r.couple(t)
	for what, id := range wrongIDs() {
		c := *m.Client
		c.ID = id
		r.refuses(t, "a client whose id is "+what, peer.ClientRole, c.Path(), c.Token, http.StatusBadRequest, http.StatusNotFound)
		frames := []peer.Frame{
			{Type: peer.Message, ClientID: id, RequestID: newID(), Kind: peer.Request, Payload: raw("1")},
			{Type: peer.Resume, ClientID: id, RequestID: newID()},
		}
		for _, f := range frames {
			e := m.dial()
			e.send(f)
			e.wantRejected("a client id that is " + what)
			e.drop()
		}
	}
	h.open() // nothing has come of any of it
}

func identifierRequest(t *testing.T, r *relay) {
	h, dv, m, _ := r.couple(t)
	for what, id := range wrongIDs() {
		c := h.newMember()
		c.ID = id
		r.refuses(t, "a pairing whose id is "+what, peer.ClientRole, c.PairingPath(), c.Token, http.StatusBadRequest, http.StatusNotFound)
		for _, f := range []peer.Frame{
			m.dealWith(id).message(peer.Request), m.dealWith(id).message(peer.Completion), m.dealWith(id).resume(), m.dealWith(id).ack(peer.Response),
		} {
			e := m.dial()
			e.send(f)
			e.wantRejected("a request id that is " + what)
			e.drop()
		}
	}
	dv.settle()
	h.open() // nothing has come of any of it
}

// A request is new for 24 hours, and clocks may differ by 5 minutes.
func identifierTime(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	for _, ago := range []time.Duration{0, time.Hour, 24*time.Hour - time.Minute, -4 * time.Minute} {
		x := m.dealWith(peer.NewID(time.Now().Add(-ago)))
		x.whole(c, dv)
	}
	for _, ago := range []time.Duration{24*time.Hour + time.Minute, 365 * 24 * time.Hour, -6 * time.Minute, -time.Hour} {
		id := peer.NewID(time.Now().Add(-ago))
		x := m.dealWith(id)
		c.send(x.message(peer.Request))
		c.want(x.refusal("INVALID_REQUEST_ID", false))
		c.close() // the client does not go on with it
		c = m.dial()
		late := h.newMember()
		late.ID = id
		r.refuses(t, "a pairing made "+ago.String()+" ago", peer.ClientRole, late.PairingPath(), late.Token, http.StatusBadRequest)
	}
	dv.settle()
	m.deal().whole(c, dv)
}

// The token is 32 bytes in unpadded base64url, and opens the door of its client.
func clientToken(t *testing.T, r *relay) {
	h, dv, m, _ := r.couple(t)
	other := h.pair(dv)
	for what, token := range map[string]string{
		"none": "", "that of another client": other.Token, "that of the device": h.device.Token, "one of 31 bytes": peer.TokenOf(31),
		"one of 33 bytes": peer.TokenOf(33), "with padding": m.Token + "=", "cut": m.Token[:42], "another": peer.NewToken(), "the end of it": m.Token[1:],
		"of 16 KB": peer.TokenOf(4 << 10),
	} {
		r.refuses(t, "a client whose token is "+what, peer.ClientRole, m.Path(), token, http.StatusUnauthorized, http.StatusRequestHeaderFieldsTooLarge)
	}
	for what, token := range map[string]string{
		"none": "", "one of 31 bytes": peer.TokenOf(31), "one of 33 bytes": peer.TokenOf(33), "with padding": peer.NewToken() + "=", "text": "secret",
		// 43 characters have two bits that stand for nothing: one token, one text.
		"not canonical": strings.Repeat("A", 42) + "B",
	} {
		stranger := h.newMember()
		r.refuses(t, "a pairing whose token is "+what, peer.ClientRole, stranger.PairingPath(), token, http.StatusUnauthorized, http.StatusBadRequest)
	}
	for _, scheme := range []string{"Basic ", "Token ", ""} {
		at := r.over(nil)
		at.Header = http.Header{"Authorization": {scheme + m.Token}}
		c, err := at.Dial(soon(t), peer.ClientRole, m.Path(), "", peer.Options{})
		r.wantRefused(t, "scheme "+scheme, c, err, http.StatusUnauthorized)
	}
	m.dial().settle()
}
