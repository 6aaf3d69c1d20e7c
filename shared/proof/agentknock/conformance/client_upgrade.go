package conformance

import (
	"net/http"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// clientUpgrades are the rows of "Upgrade failures". 500 cannot be provoked from
// outside; 429 is told with the limits.
var clientUpgrades = []story{
	{Name: "ClientUpgrade_400_BadRequest", Tell: upgradeMalformed},
	{Name: "ClientUpgrade_401_Unauthorized", Tell: clientToken},
	{Name: "ClientUpgrade_403_Forbidden", Tell: upgradeForbidden},
	{Name: "ClientUpgrade_404_NotFound", Tell: upgradeNotFound},
	{Name: "ClientUpgrade_409_Conflict", Tell: upgradeConflict},
	{Name: "ClientUpgrade_426_UpgradeRequired", Tell: upgradeRequired, Needs: methods},
	{Name: "ClientUpgrade_429_TooManyRequests", Tell: upgradeLimited, Own: &Settings{ConnectionsPerIP: 8, FramesPerMinute: plenty, NewExchanges: plenty, OpenExchanges: plenty}},
}

func upgradeMalformed(t *testing.T, r *relay) {
	h := r.home(t)
	m := h.newMember()
	for _, path := range []string{
		"/v1/address/" + h.address + "/request/" + m.ID + "0",
		"/v1/address/" + h.address[1:] + "/request/" + m.ID,
		"/v1/device/" + h.device.ID + "0/client/" + m.ID,
		"/v1/device/" + h.device.ID + "/client/0" + m.ID,
		"/v1/device/0" + h.device.ID,
	} {
		r.refuses(t, path, peer.ClientRole, path, m.Token, http.StatusBadRequest, http.StatusNotFound)
	}
	for _, path := range []string{
		"/v1/address/" + h.address + "/request/", "/v1/address/" + h.address, "/v1/device/" + h.device.ID + "/client/", "/v1/device/",
		"/v1/device/" + h.device.ID + "/client/" + m.ID + "/more", "/v1/device/" + h.device.ID + "/", "/v2/device/" + h.device.ID,
		"/v1/address/" + h.address + "/request/" + m.ID + "/",
	} {
		r.refuses(t, path, peer.ClientRole, path, m.Token, http.StatusBadRequest, http.StatusNotFound, http.StatusUnauthorized)
	}
}

// The client exists but is not active, or the device lets nobody pair.
func upgradeForbidden(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	pending, c, _ := h.introduce(dv)
	r.refuses(t, "a pending client", peer.ClientRole, pending.Path(), pending.Token, http.StatusForbidden)
	pending.set(dv, "active")
	pending.dial().settle()
	pending.set(dv, "suspended")
	c.wantEnd(4002)
	no := r.refuses(t, "a suspended client", peer.ClientRole, pending.Path(), pending.Token, http.StatusForbidden)
	if no.Retryable {
		t.Error("it is to try again")
	}
	must(t, h.device.SetPairing(soon(t), false))
	m := h.newMember()
	r.refuses(t, "a pairing while there is none", peer.ClientRole, m.PairingPath(), m.Token, http.StatusForbidden)
	must(t, h.device.SetPairing(soon(t), true))
	m.dialPairing()
}

func upgradeNotFound(t *testing.T, r *relay) {
	h, _, m, _ := r.couple(t)
	stranger := h.newMember()
	r.refuses(t, "a client that the device does not know", peer.ClientRole, stranger.Path(), stranger.Token, http.StatusNotFound, http.StatusUnauthorized)
	elsewhere := *m.Client
	elsewhere.DeviceID = newID()
	r.refuses(t, "a device that there is not", peer.ClientRole, elsewhere.Path(), m.Token, http.StatusNotFound)
	other := r.home(t)
	elsewhere.DeviceID = other.device.ID
	r.refuses(t, "a client of another device", peer.ClientRole, elsewhere.Path(), m.Token, http.StatusNotFound, http.StatusUnauthorized)
	nobody := r.newDevice(r.at)
	r.refuses(t, "a device that was not claimed", peer.DeviceRole, nobody.Path(), nobody.Token, http.StatusNotFound)
	nobody.ID = h.device.ID
	r.refuses(t, "a device with another's id", peer.DeviceRole, nobody.Path(), nobody.Token, http.StatusUnauthorized)
	r.refuses(t, "a device without a token", peer.DeviceRole, h.device.Path(), "", http.StatusUnauthorized)
}

// The first admission fixes address, client, token and device.
func upgradeConflict(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m, c, x := h.introduce(dv)
	r.refuses(t, "an attempt with another token", peer.ClientRole, m.PairingPath(), peer.NewToken(), http.StatusConflict, http.StatusUnauthorized)
	other := r.home(t)
	dv2 := other.open()
	moved := *m.Client
	moved.AddressID = other.address
	r.refuses(t, "an attempt at another address", peer.ClientRole, moved.PairingPath(), m.Token, http.StatusConflict)
	dv2.settle()
	// The first is what it was.
	x.answer(dv)
	x.receive(c, dv)
	m.dialPairing().settle()
}

func upgradeRequired(t *testing.T, r *relay) {
	h, _, m, _ := r.couple(t)
	for _, c := range []struct{ path, token string }{
		{m.Path(), m.Token}, {h.device.Path(), h.device.Token}, {h.newMember().PairingPath(), peer.NewToken()},
	} {
		header := http.Header{"Authorization": {"Bearer " + c.token}}
		resp, body, err := r.at.Call(soon(t), http.MethodGet, c.path, header, nil)
		must(t, err)
		if resp.StatusCode != http.StatusUpgradeRequired {
			t.Errorf("%s is answered with %d: %.200s", c.path, resp.StatusCode, body)
		}
	}
}

func upgradeLimited(t *testing.T, r *relay) {
	h := r.home(t)
	for range 20 {
		conn, err := h.device.Dial(soon(t), peer.Options{})
		if err == nil {
			conn.Drop()
			continue
		}
		no := r.wantRefusal(t, "one connection too many", err, r.RefusalBodies, http.StatusTooManyRequests)
		if no.RetryAfter <= 0 || no.Header.Get("Retry-After") == "" {
			t.Errorf("it is not told when to come back: %v, %.200q", no.Header, no.Body)
		}
		return
	}
	t.Error("20 connections were let in")
}
