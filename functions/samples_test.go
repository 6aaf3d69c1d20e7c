package functions_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// The sample events have the form of real ones: no field that AWS does not send, and
// those that tell what kind of event it is. What the functions make of them is
// tested where they are put together.
func TestSampleEvents(t *testing.T) {
	samples, err := filepath.Glob("*/testdata/*.json")
	if err != nil || len(samples) < 9 {
		t.Fatalf("samples are %v, %v", samples, err)
	}
	for _, name := range samples {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var kind struct {
			Version        string
			Records        []json.RawMessage
			DetailType     string                    `json:"detail-type"`
			RequestContext struct{ RouteKey string } `json:"requestContext"`
		}
		if err := json.Unmarshal(raw, &kind); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var event any
		switch {
		case kind.Version == "2.0":
			event = new(events.APIGatewayV2HTTPRequest)
		case kind.Records != nil:
			event = new(events.SQSEvent)
		case kind.DetailType == "Scheduled Event":
			event = new(events.CloudWatchEvent)
		case strings.HasPrefix(kind.RequestContext.RouteKey, "$"):
			event = new(events.APIGatewayWebsocketProxyRequest)
		default:
			t.Errorf("%s is no event that a function gets", name)
			continue
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(event); err != nil {
			t.Errorf("%s is no %T: %v", name, event, err)
		}
		if h, ok := event.(*events.APIGatewayV2HTTPRequest); ok {
			path, pattern, _ := strings.Cut(h.RequestContext.RouteKey, " ")
			pattern = strings.Replace(pattern, "{device_id}", h.PathParameters["device_id"], 1)
			if path != h.RequestContext.HTTP.Method || pattern != h.RawPath || h.RawPath != h.RequestContext.HTTP.Path {
				t.Errorf("%s: route %s, path %s and %s", name, h.RouteKey, h.RawPath, h.RequestContext.HTTP.Path)
			}
		}
	}
}
