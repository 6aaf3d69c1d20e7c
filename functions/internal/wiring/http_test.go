package wiring_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/functions/internal/wiring"
)

// What cannot be a request is the client's mistake, and is answered: a function that
// fails is counted as ours, and is a 502 for the client.
func TestRequestsThatAreNone(t *testing.T) {
	body := func(n int) string {
		b := make([]byte, n)
		b[0] = 0xff
		return base64.StdEncoding.EncodeToString(b)
	}
	for _, c := range []struct {
		name   string
		status int
		change func(e *events.APIGatewayV2HTTPRequest)
	}{
		{"as large as a body may be", 413, func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = body(1<<20), true }},
		{"larger", 413, func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = body(1<<20+1), true }},
		{"larger, as text", 413, func(e *events.APIGatewayV2HTTPRequest) { e.Body = string(make([]byte, 1<<20+1)) }},
		{"much larger and no base64", 413, func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = string(make([]byte, 4<<20)), true }},
		{"900 KB", 413, func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = body(900_000), true }},
		{"no base64", 400, func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = "{}", true }},
		{"half a base64", 400, func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = "e30", true }},
		{"a method that is none", 405, func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "PO ST" }},
		{"a method of another alphabet", 405, func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "GÉT" }},
		{"a path that is none", 400, func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "//a:b/v1" }},
		{"a query that is none", 400, func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString = "a=\x00" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, wiring.Connect)
			var e events.APIGatewayV2HTTPRequest
			e.RawPath, e.RequestContext.HTTP.Method = "/v1/device/01K5XT7Q2M8V3N6B4C9D0E1F2G/claim", "POST"
			e.Headers = map[string]string{"content-type": "application/json"}
			e.RequestContext.HTTP.SourceIP = "203.0.113.7"
			c.change(&e)
			payload, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			out, err := d.Invoke(t.Context(), wiring.Connect, payload)
			var res events.APIGatewayV2HTTPResponse
			if err != nil || json.Unmarshal(out, &res) != nil {
				t.Fatalf("not answered: %v", err)
			}
			if res.StatusCode != c.status || res.Body == "" || !json.Valid([]byte(res.Body)) {
				t.Errorf("status %d, %.100s, want %d", res.StatusCode, res.Body, c.status)
			}
		})
	}
}
