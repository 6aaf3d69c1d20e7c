package invoke_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"blindpost/shared/proof/gatewaytest"
)

func TestPlainHTTP(t *testing.T) {
	r := open(t, gatewaytest.NewRecorder(), false, nil)
	var got events.APIGatewayV2HTTPRequest
	r.setInstead(func(name string, payload []byte) (*lambda.InvokeOutput, error) {
		got = events.APIGatewayV2HTTPRequest{}
		if err := json.Unmarshal(payload, &got); err != nil || name != "c" {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasSuffix(got.RawPath, "/broken") {
			return answer(`"Task timed out"`)
		}
		if got.RawPath == "/v1/ws" {
			return answer(`{"statusCode":426,"headers":{"Upgrade":"websocket","Connection":"Upgrade"}}`)
		}
		return answer(`{"statusCode":201,"headers":{"content-type":"application/json","content-length":"999"},"body":"eyJvayI6dHJ1ZX0=","isBase64Encoded":true}`)
	})
	url := "http" + strings.TrimPrefix(r.url, "ws")
	post := func(path, body string) (int, string, string) {
		q, err := http.NewRequest("POST", url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header = header()
		q.Header.Add("X-Forwarded-For", "203.0.113.7")
		q.Header.Add("X-Two", "1")
		q.Header.Add("X-Two", "2")
		q.Close = true
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, res.Header.Get("Content-Type"), string(b)
	}
	status, kind, body := post("/v1/device/a%2Fb/claim?x=1&x=2", `{"a":1}`)
	if status != 201 || kind != "application/json" || body != `{"ok":true}` {
		t.Errorf("%d %s %s", status, kind, body)
	}
	rc := got.RequestContext.HTTP
	if got.Version != "2.0" || got.RawPath != "/v1/device/a/b/claim" || got.RawQueryString != "x=1&x=2" || got.Headers["x-two"] != "1,2" ||
		got.Body != `{"a":1}` || rc.Method != "POST" || rc.SourceIP != "203.0.113.7" || rc.Path != "/v1/device/a/b/claim" {
		t.Errorf("event %+v", got)
	}
	if post("/v1/x", "\xff"); got.Body != "/w==" || !got.IsBase64Encoded {
		t.Errorf("event %+v", got)
	}
	got = events.APIGatewayV2HTTPRequest{}
	if status, _, _ := post("/wp-login.php", ""); status != 404 || got.Version != "" {
		t.Errorf("status %d, the function was called for %q", status, got.RawPath)
	}
	if status, _, _ := post("/v1/ws", ""); status != 426 {
		t.Errorf("status %d", status)
	}
	if status, _, _ := post("/v1/broken", ""); status != 502 {
		t.Errorf("status %d", status)
	}
	if status, _, _ := post("/v1/x", strings.Repeat("x", 2<<20)); status != 413 {
		t.Errorf("status %d", status)
	}
}
