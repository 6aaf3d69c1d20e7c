package conformance

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// deviceEndpoints are the rows of the table of endpoints and of the credentials;
// deviceHTTP is what HTTP asks for.
var (
	deviceEndpoints = []story{
		{Name: "DeviceEndpoint_Claim", Tell: endpointClaim},
		{Name: "DeviceEndpoint_ClaimWithAttestation", Tell: endpointAttestation},
		{Name: "DeviceEndpoint_Address", Tell: endpointAddress},
		{Name: "DeviceEndpoint_Pairing", Tell: endpointPairing},
		{Name: "DeviceEndpoint_Push", Tell: endpointPush},
		{Name: "DeviceEndpoint_Delete", Tell: endpointDelete},
		{Name: "DeviceEndpoint_Subscription", Tell: endpointSubscription},
		{Name: "DeviceCredentials_Token", Tell: credentialsToken},
		{Name: "DeviceCredentials_OnlyAHashIsStored", Tell: credentialsStored, Needs: stored},
	}
	deviceHTTP = []story{
		{Name: "DeviceHTTP_404_UnknownDevice", Tell: httpUnknown},
		{Name: "DeviceHTTP_405_WrongMethod", Tell: httpMethod, Needs: methods},
		{Name: "DeviceHTTP_413_BodyTooLarge", Tell: httpTooLarge},
		{Name: "DeviceHTTP_415_WrongContentType", Tell: httpContentType},
		{Name: "DeviceHTTP_400_Malformed", Tell: httpMalformed},
		{Name: "DeviceHTTP_429_SaysWhenToComeBack", Tell: httpLimited, Own: &Settings{ConnectionsPerIP: 8, FramesPerMinute: plenty, NewExchanges: plenty, OpenExchanges: plenty}},
		{Name: "DeviceHTTP_UnknownMembersAreIgnored", Tell: httpUnknownMembers},
	}
)

// endpoints are all of them, with a body that is good.
func (h *home) endpoints() map[string]string {
	return map[string]string{
		"/claim":   fmt.Sprintf(`{"device_token":%q}`, h.device.Token),
		"/address": fmt.Sprintf(`{"address_id":%q}`, h.address),
		"/pairing": `{"enabled":true}`, "/push": `{"fid":"fid-of-a-test"}`, "/subscription/status": `{}`,
	}
}

// call posts any body and returns the status and the answer.
func (h *home) call(method, path, token, kind, body string) (int, []byte, http.Header) {
	h.t.Helper()
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	if kind != "" {
		header.Set("Content-Type", kind)
	}
	resp, answer, err := h.r.at.Call(soon(h.t), method, path, header, strings.NewReader(body))
	if err != nil {
		h.t.Fatalf("%s: %v", path, err)
	}
	if found := h.r.secrets.In(answer); found != "" {
		h.t.Errorf("the answer of %s tells %s", path, found)
	}
	return resp.StatusCode, answer, resp.Header
}

// refusesCall wants a call to be refused with one of these statuses, and with a JSON
// error.
func (h *home) refusesCall(what, method, path, token, kind, body string, statuses ...int) string {
	h.t.Helper()
	status, answer, header := h.call(method, path, token, kind, body)
	if !slices.Contains(statuses, status) {
		h.t.Errorf("%s: %s is answered with %d, not %v: %.200s", what, path, status, statuses, answer)
	}
	code := jsonString(answer, "error")
	if code == "" || jsonString(answer, "message") == "" || !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
		h.t.Errorf("%s: the refusal of %s is %q, %.200q", what, path, header.Get("Content-Type"), answer)
	}
	return code
}

// jsonString is a string member of an object, "" if it is not there.
func jsonString(object []byte, name string) string {
	_, rest, _ := bytes.Cut(bytes.ReplaceAll(object, []byte(" "), nil), []byte(`"`+name+`":"`))
	value, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return ""
	}
	return string(value)
}

const jsonType = "application/json"

// The same id with the same token succeeds again; with another it is a conflict.
func endpointClaim(t *testing.T, r *relay) {
	d := r.newDevice(r.at)
	for range 3 {
		m, err := d.Relay.Post(soon(t), d.Path()+"/claim", map[string]string{"device_token": d.Token})
		must(t, err)
		if string(m["claimed"]) != "true" || string(m["device_id"]) != `"`+d.ID+`"` {
			t.Errorf("the answer is %s", m)
		}
	}
	thief := r.newDevice(r.at)
	thief.ID = d.ID
	r.wantRefusal(t, "a claim with another token", thief.Claim(soon(t)), true, http.StatusConflict)
	r.refuses(t, "the thief", peer.DeviceRole, thief.Path(), thief.Token, http.StatusUnauthorized)
	must(t, d.Claim(soon(t)))
	h := &home{t: t, r: r, name: "device", device: d}
	h.open()
	for what, body := range map[string]string{
		"no token": `{}`, "null": `{"device_token":null}`, "a number": `{"device_token":7}`, "31 bytes": fmt.Sprintf(`{"device_token":%q}`, peer.TokenOf(31)),
		"33 bytes": fmt.Sprintf(`{"device_token":%q}`, peer.TokenOf(33)), "padding": fmt.Sprintf(`{"device_token":"%s="}`, peer.NewToken()),
		"empty": `{"device_token":""}`, "other letters": `{"device_token":"` + strings.Repeat("+", 43) + `"}`,
	} {
		h.refusesCall(what, "POST", r.newDevice(r.at).Path()+"/claim", "", jsonType, body, http.StatusBadRequest)
	}
	for what, id := range wrongIDs() {
		h.refusesCall(what, "POST", "/v1/device/"+strings.ReplaceAll(id, "É", "%C3%89")+"/claim", "", jsonType,
			fmt.Sprintf(`{"device_token":%q}`, d.Token), http.StatusBadRequest, http.StatusNotFound)
	}
}

// An attestation that is none must not upset anybody. Whether it is looked at is the
// operator's setting.
func endpointAttestation(t *testing.T, r *relay) {
	h := r.home(t)
	for what, attestation := range map[string]string{
		"null": "null", "empty": "{}", "a string": `"x"`, "no chain": `{"type":"android"}`, "an empty chain": `{"type":"android","certificate_chain":[]}`,
		"no certificates": `{"type":"android","certificate_chain":["","AAAA","!!"]}`, "numbers": `{"type":"android","certificate_chain":[1,2]}`,
		"unknown": `{"type":"ios","certificate_chain":["AAAA"]}`,
	} {
		d := r.newDevice(r.at)
		status, answer, _ := h.call("POST", d.Path()+"/claim", "", jsonType, fmt.Sprintf(`{"device_token":%q,"attestation":%s}`, d.Token, attestation))
		if status != http.StatusOK && status != http.StatusBadRequest && status != http.StatusForbidden {
			t.Errorf("%s: answered with %d: %.200s", what, status, answer)
		}
	}
}

func endpointAddress(t *testing.T, r *relay) {
	h := r.home(t)
	other := r.home(t)
	for range 2 { // again is no conflict
		m, err := h.device.Post(soon(t), "/address", map[string]string{"address_id": h.address})
		must(t, err)
		if string(m["address_id"]) != `"`+h.address+`"` {
			t.Errorf("the answer is %s", m)
		}
	}
	no := r.wantRefusal(t, "another's address", h.device.SetAddress(soon(t), other.address), true, http.StatusConflict)
	if no.Code != "ADDRESS_ALREADY_CLAIMED" {
		t.Errorf("the code is %s", no.Code)
	}
	dv, dv2 := h.open(), other.open()
	h.pair(dv)
	other.pair(dv2)
	for what, id := range map[string]string{
		"upper case": strings.ToUpper(peer.AddressID("upper", "case")), "short": h.address[1:], "long": h.address + "0", "no hex": strings.Repeat("g", 32), "empty": "",
	} {
		r.wantRefusal(t, what, h.device.SetAddress(soon(t), id), true, http.StatusBadRequest)
	}
	// A device that moves is found at its new address.
	h.address = peer.AddressID("correct", "horse", "battery", "staple", newID())
	must(t, h.device.SetAddress(soon(t), h.address))
	h.pair(dv)
}

func endpointPairing(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	for _, enabled := range []bool{false, false, true, true, false, true} {
		m, err := h.device.Post(soon(t), "/pairing", map[string]bool{"enabled": enabled})
		must(t, err)
		if string(m["pairing_enabled"]) != fmt.Sprint(enabled) {
			t.Errorf("the answer is %s", m)
		}
		if enabled {
			h.pair(dv)
		} else {
			c := h.newMember()
			r.refuses(t, "a pairing", peer.ClientRole, c.PairingPath(), c.Token, http.StatusForbidden)
		}
	}
	for what, body := range map[string]string{"nothing": "{}", "null": `{"enabled":null}`, "a number": `{"enabled":1}`, "a string": `{"enabled":"true"}`} {
		h.refusesCall(what, "POST", h.device.Path()+"/pairing", h.device.Token, jsonType, body, http.StatusBadRequest)
	}
	h.pair(dv)
}

func endpointPush(t *testing.T, r *relay) {
	h := r.home(t)
	h.open() // push_registration says missing
	for _, fid := range []string{"fid-one", "fid-one", "fid-two"} {
		m, err := h.device.Post(soon(t), "/push", map[string]string{"fid": fid})
		must(t, err)
		if string(m["push_registration"]) != `"registered"` {
			t.Errorf("the answer is %s", m)
		}
	}
	h.fid = "fid-two"
	h.open() // and now registered
	for what, body := range map[string]string{"nothing": "{}", "null": `{"fid":null}`, "a number": `{"fid":1}`, "empty": `{"fid":""}`, "too long": `{"fid":"` + strings.Repeat("x", 5000) + `"}`} {
		h.refusesCall(what, "POST", h.device.Path()+"/push", h.device.Token, jsonType, body, http.StatusBadRequest)
	}
	h.open()
}

// All of the device's state goes, its sockets close.
func endpointDelete(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	pending, pc, _ := h.introduce(dv)
	x := m.deal()
	x.publish(c)
	dv.want(x.delivery(peer.Request))
	answer, err := h.device.Post(soon(t), "/delete", struct{}{})
	must(t, err)
	if string(answer["deleted"]) != "true" {
		t.Errorf("the answer is %s", answer)
	}
	dv.wantEnd()
	c.wantEnd()
	pc.wantEnd()
	r.refuses(t, "its device", peer.DeviceRole, h.device.Path(), h.device.Token, http.StatusNotFound, http.StatusUnauthorized)
	r.refuses(t, "its client", peer.ClientRole, m.Path(), m.Token, http.StatusNotFound, http.StatusUnauthorized)
	r.refuses(t, "its pairing", peer.ClientRole, pending.PairingPath(), pending.Token, http.StatusNotFound, http.StatusUnauthorized)
	r.wantRefusal(t, "its token", h.device.SetPairing(soon(t), true), true, http.StatusNotFound, http.StatusUnauthorized)

	// The address is free, and so is the id, with nothing behind it.
	other := r.home(t)
	must(t, other.device.SetAddress(soon(t), h.address))
	other.address = h.address
	other.pair(other.open())
	h.device.Token = r.newDevice(r.at).Token
	must(t, h.device.Claim(soon(t)))
	h.open()
	r.refuses(t, "its client", peer.ClientRole, m.Path(), m.Token, http.StatusNotFound, http.StatusUnauthorized)
}

// What was the vendor's business: everybody has a subscription, the rest is not here.
func endpointSubscription(t *testing.T, r *relay) {
	h := r.home(t)
	m, err := h.device.Post(soon(t), "/subscription/status", struct{}{})
	must(t, err)
	if string(m["active"]) != "true" {
		t.Errorf("the answer is %s", m)
	}
	for _, path := range []string{"/subscription/update", "/review", "/nothing", "/subscription", "/subscription/", "/claim/", "/"} {
		status, answer, _ := h.call("POST", h.device.Path()+path, h.device.Token, jsonType, "{}")
		if status != http.StatusNotFound {
			t.Errorf("%s answers %d: %.200s", path, status, answer)
		}
	}
	for _, path := range []string{"/subscription/update", "/review"} {
		h.refusesCall("a service of the vendor", "POST", h.device.Path()+path, h.device.Token, jsonType, "{}", http.StatusNotFound)
	}
}

func credentialsToken(t *testing.T, r *relay) {
	h := r.home(t)
	other := r.home(t)
	for what, token := range map[string]string{
		"none": "", "another device's": other.device.Token, "one of 31 bytes": peer.TokenOf(31), "with padding": h.device.Token + "=",
		"cut": h.device.Token[:40], "a new one": peer.NewToken(),
	} {
		for endpoint, body := range h.endpoints() {
			if endpoint != "/claim" {
				h.refusesCall("token: "+what, "POST", h.device.Path()+endpoint, token, jsonType, body, http.StatusUnauthorized)
			}
		}
		h.refusesCall("token: "+what, "POST", h.device.Path()+"/delete", token, jsonType, "{}", http.StatusUnauthorized)
		r.refuses(t, "the device with token: "+what, peer.DeviceRole, h.device.Path(), token, http.StatusUnauthorized)
	}
	h.open()
}

func credentialsStored(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	m.deal().whole(c, dv)
	data := r.Stored(t)
	if !bytes.Contains(data, []byte(m.ID)) {
		t.Error("the files do not even hold the client's id: nothing can be said about its token")
	}
	if what := r.secrets.Find(data, "a client token"); what != "" {
		t.Errorf("the files hold %s", what)
	}
	if what := r.secrets.Find(data, "a device token"); what != "" {
		t.Errorf("the files hold %s", what)
	}
}

func httpUnknown(t *testing.T, r *relay) {
	h := r.home(t)
	nobody := r.newDevice(r.at)
	for endpoint, body := range h.endpoints() {
		if endpoint != "/claim" {
			h.refusesCall("unknown device", "POST", nobody.Path()+endpoint, nobody.Token, jsonType, body, http.StatusNotFound)
		}
	}
	h.refusesCall("unknown device", "POST", nobody.Path()+"/delete", nobody.Token, jsonType, "{}", http.StatusNotFound)
}

func httpMethod(t *testing.T, r *relay) {
	h := r.home(t)
	for endpoint, body := range h.endpoints() {
		for _, method := range []string{"GET", "PUT", "DELETE", "PATCH"} {
			h.refusesCall(method, method, h.device.Path()+endpoint, h.device.Token, jsonType, body, http.StatusMethodNotAllowed)
		}
	}
}

// Bodies are bounded, and who sends more is told so.
func httpTooLarge(t *testing.T, r *relay) {
	h := r.home(t)
	for endpoint, body := range h.endpoints() {
		large := body[:len(body)-1] + `,"more":"` + strings.Repeat("x", 240<<10) + `"}`
		if body == "{}" {
			large = `{"more":"` + strings.Repeat("x", 240<<10) + `"}`
		}
		h.refusesCall("240 KiB", "POST", h.device.Path()+endpoint, h.device.Token, jsonType, large, http.StatusRequestEntityTooLarge)
	}
}

func httpContentType(t *testing.T, r *relay) {
	h := r.home(t)
	for endpoint, body := range h.endpoints() {
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "application/jsonp", "multipart/form-data; boundary=x", ";", ""} {
			h.refusesCall("type "+kind, "POST", h.device.Path()+endpoint, h.device.Token, kind, body, http.StatusUnsupportedMediaType)
		}
		for _, kind := range []string{jsonType, "application/json; charset=utf-8", "Application/JSON"} {
			if status, answer, _ := h.call("POST", h.device.Path()+endpoint, h.device.Token, kind, body); status != http.StatusOK {
				t.Errorf("%s with type %q is answered with %d: %.200s", endpoint, kind, status, answer)
			}
		}
	}
}

func httpMalformed(t *testing.T, r *relay) {
	h := r.home(t)
	for endpoint, body := range h.endpoints() {
		for what, bad := range map[string]string{
			"nothing": "", "half": body[:len(body)-1], "two": body + body, "an array": "[" + body + "]", "null": "null", "a string": `"x"`,
			"brackets": strings.Repeat("[", 20_000), "no UTF-8": "\xff\xfe",
		} {
			if endpoint == "/subscription/status" && what == "nothing" {
				continue // it needs no body
			}
			h.refusesCall(what, "POST", h.device.Path()+endpoint, h.device.Token, jsonType, bad, http.StatusBadRequest, http.StatusRequestEntityTooLarge)
		}
	}
	h.pair(h.open())
}

func httpUnknownMembers(t *testing.T, r *relay) {
	h := r.home(t)
	for endpoint, body := range h.endpoints() {
		more := strings.Replace(body[:len(body)-1]+`,"future":[{"a":null}],"Enabled":7,"FID":7}`, "{,", "{", 1)
		if status, answer, _ := h.call("POST", h.device.Path()+endpoint, h.device.Token, jsonType, more); status != http.StatusOK {
			t.Errorf("%s is answered with %d: %.200s", endpoint, status, answer)
		}
	}
}

// Whether an address may claim any number of devices is open. Who may not is told
// when to come back.
func httpLimited(t *testing.T, r *relay) {
	for range 40 {
		err := r.newDevice(r.at).Claim(soon(t))
		if err == nil {
			continue
		}
		no := r.wantRefusal(t, "one claim too many", err, true, http.StatusTooManyRequests)
		if no.RetryAfter <= 0 || no.Header.Get("Retry-After") == "" || !no.Retryable {
			t.Errorf("it is not told when to come back: %v, %.200q", no.Header, no.Body)
		}
		return
	}
	t.Log("claims are not limited by address")
}
