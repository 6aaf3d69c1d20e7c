package wiring_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/functions/internal/wiring"
)

// The samples in a row: a device claims its name, says how it can be woken, connects,
// and does all of that again, as after an answer that was lost.
func TestSampleDevice(t *testing.T) {
	d := newDesk(t, wiring.Connect, "BLINDPOST_ORIGIN_SECRET_ARN="+secretARN)
	if out, err := d.sample(wiring.Connect, "connect-device.json"); err != nil || strings.Contains(out, `"statusCode":2`) {
		t.Errorf("before it has a name: %s, %v", out, err)
	}
	for range 2 {
		d.http("http-claim.json", 200, `{"claimed":true,"device_id":"01K5XT7Q2M8V3N6B4C9D0E1F2G"}`)
		d.http("http-push.json", 200, `{"push_registration":"registered"}`)
		if out, err := d.sample(wiring.Connect, "connect-device.json"); err != nil || !strings.Contains(out, `"statusCode":200`) {
			t.Errorf("connect: %s, %v", out, err)
		}
	}
	const token = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	d.http("http-claim.json", 409, "", token, strings.ToLower(token[:1])+token[1:])
	d.http("http-push.json", 401, "", "Bearer "+token, "Bearer "+strings.ToLower(token[:1])+token[1:])
	d.http("http-push.json", 404, "", "/push", "/review")
	if log := string(d.log.Bytes()); strings.Contains(log, token) {
		t.Errorf("the token was logged: %s", log)
	}
}

// http invokes functions/connect with a request, changed in words.
func (d *desk) http(name string, status int, body string, changes ...string) {
	d.t.Helper()
	out, err := d.sample(wiring.Connect, name, changes...)
	var res events.APIGatewayV2HTTPResponse
	if err != nil || json.Unmarshal([]byte(out), &res) != nil || res.StatusCode != status || (body != "" && res.Body != body) {
		d.t.Errorf("%s: %s, %v, want %d %s", name, out, err, status, body)
	}
}
