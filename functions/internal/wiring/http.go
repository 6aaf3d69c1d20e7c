package wiring

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/shared/settings"
)

// maxBody bounds a decoded body. Every endpoint takes less.
const maxBody = 1 << 20

// httpRequest reads the event of an HTTP API (payload format 2.0); false if it is
// another event.
func httpRequest(payload []byte) (events.APIGatewayV2HTTPRequest, bool) {
	var e events.APIGatewayV2HTTPRequest
	ok := json.Unmarshal(payload, &e) == nil && e.RequestContext.HTTP.Method != ""
	return e, ok
}

// serveHTTP has the handler of the dialects answer a request.
func (a *App) serveHTTP(ctx context.Context, e events.APIGatewayV2HTTPRequest) (any, error) {
	c, err := a.core(ctx)
	if err != nil {
		return nil, err
	}
	r, no := requestOf(ctx, e)
	if no != nil {
		return *no, nil
	}
	if r.Method == http.MethodGet && c.relay.Serves(r.URL.Path) {
		return upgradeRequired, nil
	}
	ip := c.adapter.RemoteIP(ctx, e.RequestContext.HTTP.SourceIP, r.Header)
	r.Header.Del(settings.OriginSecretHeader.Of(a.values))
	w := &recorder{header: make(http.Header), status: http.StatusOK}
	c.http.ServeHTTP(w, r.WithContext(context.WithValue(ctx, remoteIPKey{}, ip)))
	return w.response(), nil
}

// upgradeRequired is the answer to a plain GET at a path of WebSockets. The HTTP API has
// no such route; our own front passes unknown requests on.
var upgradeRequired = events.APIGatewayV2HTTPResponse{
	StatusCode: http.StatusUpgradeRequired,
	Headers: map[string]string{
		"Content-Type": "application/json", "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
	},
	Body: `{"error":"upgrade_required","message":"This path speaks WebSocket."}`,
}

// requestOf makes the request, or the answer to an event that is no valid one.
func requestOf(ctx context.Context, e events.APIGatewayV2HTTPRequest) (*http.Request, *events.APIGatewayV2HTTPResponse) {
	body, no := bodyOf(e)
	if no != nil {
		return nil, no
	}
	if _, err := http.NewRequest(e.RequestContext.HTTP.Method, "/", nil); err != nil {
		return nil, mistake(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "There is no such method.")
	}
	u := url.URL{Path: e.RawPath, RawQuery: e.RawQueryString}
	r, err := http.NewRequestWithContext(ctx, e.RequestContext.HTTP.Method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, mistake(http.StatusBadRequest, "INVALID_REQUEST", "The path or the query cannot be one.")
	}
	for name, values := range e.Headers {
		// API Gateway joins values with commas. None of the headers that count here may
		// come twice.
		r.Header.Add(name, values)
	}
	return r, nil
}

// bodyOf is the decoded body. A body that is far too long is not decoded.
func bodyOf(e events.APIGatewayV2HTTPRequest) ([]byte, *events.APIGatewayV2HTTPResponse) {
	tooLarge := func() ([]byte, *events.APIGatewayV2HTTPResponse) {
		return nil, mistake(http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE", "The body is too large.")
	}
	if !e.IsBase64Encoded {
		if len(e.Body) > maxBody {
			return tooLarge()
		}
		return []byte(e.Body), nil
	}
	if len(e.Body) > base64.StdEncoding.EncodedLen(maxBody) {
		return tooLarge()
	}
	body, err := base64.StdEncoding.DecodeString(e.Body)
	if err != nil {
		return nil, mistake(http.StatusBadRequest, "INVALID_REQUEST", "The body is said to be base64 and is not.")
	}
	if len(body) > maxBody { // the padding hides up to two bytes
		return tooLarge()
	}
	return body, nil
}

// mistake is the answer to an invalid request, in the form of the handlers' answers.
func mistake(status int, code, message string) *events.APIGatewayV2HTTPResponse {
	return &events.APIGatewayV2HTTPResponse{
		StatusCode: status,
		Headers:    map[string]string{"Content-Type": "application/json"},
		Body:       `{"error":"` + code + `","message":"` + message + `"}`,
	}
}

type remoteIPKey struct{}

// remoteIP is the client's address of a request.
func remoteIP(r *http.Request) netip.Addr {
	ip, _ := r.Context().Value(remoteIPKey{}).(netip.Addr)
	return ip
}

// recorder collects a response.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

var _ http.ResponseWriter = (*recorder)(nil)

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

func (w *recorder) response() events.APIGatewayV2HTTPResponse {
	out := events.APIGatewayV2HTTPResponse{StatusCode: w.status, Headers: make(map[string]string), Body: w.body.String()}
	for name, values := range w.header {
		out.Headers[name] = strings.Join(values, ", ")
	}
	return out
}
