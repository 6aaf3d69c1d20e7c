package invoke_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"blindpost/shared/proof/gatewaytest"
)

// What is between this front and the client is not for the function to say, neither with
// an answer to a request nor with one that refuses an upgrade: a wrong length would cut
// the answer or hang the client.
func TestHeadersOfTheTransport(t *testing.T) {
	r := open(t, gatewaytest.NewRecorder(), false, nil)
	var status int
	r.setInstead(func(string, []byte) (*lambda.InvokeOutput, error) {
		return answer(fmt.Sprintf(`{"statusCode":%d,"headers":{"content-length":"2","Transfer-Encoding":"chunked","upgrade":"h2c",`+
			`"connection":"keep-alive, X-Kept","Keep-Alive":"timeout=5","trailer":"X-Kept","Proxy-Connection":"close","te":"trailers",`+
			`"X-Kept":"yes"},"multiValueHeaders":{"CONTENT-LENGTH":["900"]},"body":"a body of its own"}`, status))
	})
	for _, upgrade := range []bool{true, false} {
		for _, status = range []int{401, 429, 503} {
			res, body := rawAnswer(t, r, upgrade)
			if res.StatusCode != status || body != "a body of its own" || res.Header.Get("X-Kept") != "yes" {
				t.Errorf("upgrade %v: status %d, %q, %v", upgrade, res.StatusCode, body, res.Header)
			}
			for _, name := range []string{"Upgrade", "Keep-Alive", "Proxy-Connection", "Te"} {
				if v := res.Header.Values(name); v != nil {
					t.Errorf("upgrade %v: %s is %q", upgrade, name, v)
				}
			}
			if len(res.TransferEncoding) > 0 || len(res.Trailer) > 0 || strings.Contains(res.Header.Get("Connection"), "X-Kept") {
				t.Errorf("upgrade %v: %q, %v, %v", upgrade, res.TransferEncoding, res.Trailer, res.Header)
			}
		}
	}
}

// rawAnswer reads an answer as it is on the wire.
func rawAnswer(t *testing.T, r *rig, upgrade bool) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	request := "GET /v1/ws HTTP/1.1\r\nHost: front.example\r\nX-Forwarded-Proto: https\r\n"
	if upgrade {
		request += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	} else {
		request += "Connection: close\r\n"
	}
	if _, err := io.WriteString(c, request+"\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("the body does not arrive: %v", err)
	}
	return res, string(body)
}
