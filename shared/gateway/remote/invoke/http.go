package invoke

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/shared/gateway/server"
)

// discard drops the log lines of net/http about clients that hang up.
var discard = log.New(io.Discard, "", 0)

// endpoints is the path prefix of the endpoints of all dialects.
const endpoints = "/v1/"

// maxBody is the largest body of a plain HTTP request in bytes. The functions have
// limits of their own, below it.
const maxBody = 1 << 20

// httpHandler gives plain HTTP requests to functions/connect, as the HTTP API does
// (payload format 2.0).
type httpHandler struct{ h *handler }

var _ http.Handler = (*httpHandler)(nil)

// ServeHTTP implements http.Handler.
func (s *httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, endpoints) {
		http.NotFound(w, r) // scanners must not cost a call of a function
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the request is too large or was cut off", http.StatusRequestEntityTooLarge)
		return
	}
	out, err := s.h.invoke(r.Context(), "http", s.h.o.Functions.Connect, s.h.httpEvent(r, body))
	if err != nil {
		s.h.o.Log.WarnContext(r.Context(), "failed to answer a request", "error", err)
		http.Error(w, http.StatusText(statusOf(err)), statusOf(err))
		return
	}
	if !writeAnswer(w, out) {
		s.h.o.Log.WarnContext(r.Context(), "the function connect gave no answer of the right form")
		http.Error(w, http.StatusText(http.StatusBadGateway), http.StatusBadGateway)
	}
}

func (h *handler) httpEvent(r *http.Request, body []byte) events.APIGatewayV2HTTPRequest {
	now, ip := time.Now(), ""
	if a, ok := server.RemoteIP(r.Context()); ok {
		ip = a.String()
	}
	out := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "$default", RawPath: r.URL.Path, RawQueryString: r.URL.RawQuery,
		Headers: map[string]string{"host": r.Host}, QueryStringParameters: map[string]string{},
		StageVariables: h.variables(),
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: "$default", Stage: "$default", RequestID: h.o.NewID(), APIID: "blindpost", DomainName: h.domain,
			Time: now.UTC().Format(accessLogTime), TimeEpoch: now.UnixMilli(),
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: ip, UserAgent: userAgent(r.Header),
			},
		},
	}
	// Format 2.0 has names in lower case, and joins the values of a name with commas.
	for name, values := range r.Header {
		if name != "Cookie" {
			out.Headers[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	for name, values := range r.URL.Query() {
		out.QueryStringParameters[name] = strings.Join(values, ",")
	}
	switch {
	case len(body) == 0:
	case utf8.Valid(body):
		out.Body = string(body)
	default:
		out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return out
}

// writeAnswer writes the answer of a function. If out is no valid answer, it writes
// nothing and reports false.
func writeAnswer(w http.ResponseWriter, out []byte) bool {
	var res events.APIGatewayV2HTTPResponse
	if json.Unmarshal(out, &res) != nil || res.StatusCode < 200 || res.StatusCode > 599 {
		return false
	}
	body, err := bodyOf(res.Body, res.IsBase64Encoded)
	if err != nil {
		return false
	}
	for name, values := range headerOf(res.Headers, res.MultiValueHeaders) {
		w.Header()[name] = values
	}
	if res.StatusCode == http.StatusUpgradeRequired {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
	}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(body) // a peer that is gone needs no answer
	return true
}
