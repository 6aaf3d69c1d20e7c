package agentknock

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// ask calls an endpoint.
func (s *stage) ask(method, path, token, media, body string) (int, map[string]any, http.Header) {
	r := httptest.NewRequest(method, "/v1/device/"+path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	w := httptest.NewRecorder()
	s.knock.ServeHTTP(w, r)
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		s.t.Errorf("%s %s answers %q", method, path, w.Body)
	}
	return w.Code, got, w.Header()
}

const jsonType = "application/json; charset=utf-8"

func TestEndpoints(t *testing.T) {
	s := newStage(t, false)
	const other = "01KJME0000DEV1CE0000000001"
	mine, theirs := peer.NewToken(), peer.NewToken()
	claim := func(token string) string { return `{"device_token":"` + token + `"}` }
	address := `{"address_id":"` + stageAddress + `"}`
	for _, c := range []struct {
		name, method, path, token, media, body string
		status                                 int
		code                                   string // or a member of the answer
	}{
		{"claim", "POST", stageDevice + "/claim", "", jsonType, claim(mine), 200, "claimed"},
		{"again", "POST", stageDevice + "/claim", "", jsonType, claim(mine), 200, "device_id"},
		{"with another token", "POST", stageDevice + "/claim", "", jsonType, claim(theirs), 409, "DEVICE_ALREADY_CLAIMED"},
		{"with attestation", "POST", other + "/claim", "", jsonType, `{"attestation":{"type":"android","certificate_chain":["a"]},` + claim(theirs)[1:], 200, "claimed"},
		{"with half of one", "POST", other + "/claim", "", jsonType, `{"attestation":{"type":"android"},` + claim(theirs)[1:], 400, "INVALID_REQUEST"},
		{"short token", "POST", stageDevice + "/claim", "", jsonType, claim(mine[:42]), 400, "INVALID_REQUEST"},
		{"long token", "POST", stageDevice + "/claim", "", jsonType, claim(mine + "A"), 400, "INVALID_REQUEST"},
		{"padded token", "POST", stageDevice + "/claim", "", jsonType, claim(mine + "="), 400, "INVALID_REQUEST"},
		{"no token", "POST", stageDevice + "/claim", "", jsonType, `{}`, 400, "INVALID_REQUEST"},
		{"no object", "POST", stageDevice + "/claim", "", jsonType, `[]`, 400, "INVALID_REQUEST"},
		{"nothing", "POST", stageDevice + "/claim", "", jsonType, ``, 400, "INVALID_REQUEST"},
		{"lower case", "POST", strings.ToLower(stageDevice) + "/claim", "", jsonType, claim(mine), 400, "INVALID_REQUEST"},
		{"zero", "POST", zeroID + "/claim", "", jsonType, claim(mine), 400, "INVALID_REQUEST"},
		{"too large", "POST", stageDevice + "/claim", "", jsonType, `{"x":"` + strings.Repeat("x", maxBody) + `"}`, 413, "PAYLOAD_TOO_LARGE"},
		{"wrong method", "GET", stageDevice + "/claim", "", jsonType, claim(mine), 405, "METHOD_NOT_ALLOWED"},
		{"wrong type", "POST", stageDevice + "/claim", "", "text/plain", claim(mine), 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"no type", "POST", stageDevice + "/claim", "", "", claim(mine), 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"unknown path", "POST", stageDevice + "/nothing", mine, jsonType, `{}`, 404, "NOT_FOUND"},
		{"review", "POST", stageDevice + "/review", mine, jsonType, `{}`, 404, "NOT_FOUND"},
		{"subscription/update", "POST", stageDevice + "/subscription/update", mine, jsonType, `{}`, 404, "NOT_FOUND"},
		{"subscription/status", "POST", stageDevice + "/subscription/status", mine, jsonType, `{}`, 200, "active"},
		{"without token", "POST", stageDevice + "/address", "", jsonType, address, 401, "UNAUTHORIZED"},
		{"of another device", "POST", stageDevice + "/address", theirs, jsonType, address, 401, "UNAUTHORIZED"},
		{"unknown device", "POST", "01KJME0000DEV1CE0000000009/address", mine, jsonType, address, 404, "NOT_FOUND"},
		{"address", "POST", stageDevice + "/address", mine, jsonType, address, 200, "address_id"},
		{"address again", "POST", stageDevice + "/address", mine, jsonType, address, 200, "address_id"},
		{"taken address", "POST", other + "/address", theirs, jsonType, address, 409, "ADDRESS_ALREADY_CLAIMED"},
		{"no address", "POST", stageDevice + "/address", mine, jsonType, `{"address_id":"` + strings.ToUpper(stageAddress) + `"}`, 400, "INVALID_REQUEST"},
		{"pairing", "POST", stageDevice + "/pairing", mine, jsonType, `{"enabled":false}`, 200, "pairing_enabled"},
		{"pairing is no text", "POST", stageDevice + "/pairing", mine, jsonType, `{"enabled":"true"}`, 400, "INVALID_REQUEST"},
		{"push", "POST", stageDevice + "/push", mine, jsonType, `{"fid":"f"}`, 200, "push_registration"},
		{"push to nobody", "POST", stageDevice + "/push", mine, jsonType, `{"fid":""}`, 400, "INVALID_REQUEST"},
		{"a new address", "POST", stageDevice + "/address", mine, jsonType, `{"address_id":"` + strings.Repeat("0", 32) + `"}`, 200, "address_id"},
		{"lets go of the old one", "POST", other + "/address", theirs, jsonType, address, 200, "address_id"},
		{"delete", "POST", stageDevice + "/delete", mine, jsonType, `{}`, 200, "deleted"},
		{"after that", "POST", stageDevice + "/push", mine, jsonType, `{"fid":"f"}`, 404, "NOT_FOUND"},
		{"the address is free", "POST", other + "/address", theirs, jsonType, `{"address_id":"` + strings.Repeat("0", 32) + `"}`, 200, "address_id"},
		{"and so is the id", "POST", stageDevice + "/claim", "", jsonType, claim(theirs), 200, "claimed"},
	} {
		status, got, header := s.ask(c.method, c.path, c.token, c.media, c.body)
		_, has := got[c.code]
		if status != c.status || (!has && got["error"] != c.code) {
			t.Errorf("%s: %d %v, want %d %s", c.name, status, got, c.status, c.code)
		}
		if status == 405 && header.Get("Allow") != "POST" {
			t.Errorf("%s: allowed is %q", c.name, header.Get("Allow"))
		}
	}
}
