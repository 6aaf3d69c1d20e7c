package wiring_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/functions/internal/wiring"
)

// A plain GET at a path of WebSockets, which our own front passes on.
func TestUpgradeRequired(t *testing.T) {
	h := open(t, false, false)
	for path, want := range map[string]int{"/v1/ws": 426, "/v1/nothing": 404} {
		e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, RouteKey: "$default"}
		e.RequestContext.HTTP.Method, e.RequestContext.HTTP.Path = "GET", path
		payload, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		out, err := h.function(wiring.Connect)(t.Context(), payload)
		var res events.APIGatewayV2HTTPResponse
		if err != nil || json.Unmarshal(out, &res) != nil || res.StatusCode != want {
			t.Errorf("%s: %v, %s", path, err, out)
		}
	}
}
