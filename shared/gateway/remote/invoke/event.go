package invoke

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw/record"
)

// The events of this front. Fields that have no meaning here get values of the same form
// as API Gateway's.

const (
	stage = "front"
	// accessLogTime is the format of requestTime.
	accessLogTime = "02/Jan/2006:15:04:05 -0700"
	maxUserAgent  = 256 // bytes that are kept for each connection
)

// peer is the part that all events of a connection have in common.
type peer struct {
	sourceIP    string
	userAgent   string
	connectedAt time.Time
}

func newID() string {
	var b [15]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// newConn makes the id of a connection. It must be unguessable, because with
// the id and the secret alone a caller can use @connections, and unique across fronts and
// restarts.
func newConn() gateway.Conn { return gateway.Conn(newID()) }

func (h *handler) context(route, event string, c gateway.Conn, p *peer, at time.Time) events.APIGatewayWebsocketProxyRequestContext {
	id := h.o.NewID()
	return events.APIGatewayWebsocketProxyRequestContext{
		RouteKey: route, EventType: event, MessageDirection: "IN",
		ConnectionID: string(c), ConnectedAt: p.connectedAt.UnixMilli(),
		RequestID: id, ExtendedRequestID: id,
		RequestTime: at.UTC().Format(accessLogTime), RequestTimeEpoch: at.UnixMilli(),
		DomainName: h.domain, Stage: stage, APIID: "blindpost",
		Identity: events.APIGatewayRequestIdentity{SourceIP: p.sourceIP, UserAgent: p.userAgent},
	}
}

func (h *handler) variables() map[string]string {
	return map[string]string{record.CallbackVariable: h.o.Callback}
}

// connectEvent is a $connect event. The path replaces the client's value of the query
// parameter, as a CloudFront function does it.
func (h *handler) connectEvent(e gateway.ConnectEvent, p *peer) events.APIGatewayWebsocketProxyRequest {
	query := url.Values{}
	for name, values := range e.Query {
		query[name] = values
	}
	query[h.o.PathParameter] = []string{e.Path}
	header := e.Header.Clone()
	forwarded := append(header.Values("X-Forwarded-For"), p.sourceIP)
	header.Set("X-Forwarded-For", strings.Join(forwarded, ", "))
	header.Set("X-Forwarded-Proto", "https")
	return events.APIGatewayWebsocketProxyRequest{
		Headers: lastValues(header), MultiValueHeaders: header,
		QueryStringParameters: lastValues(query), MultiValueQueryStringParameters: query,
		StageVariables: h.variables(),
		RequestContext: h.context("$connect", "CONNECT", e.Conn, p, e.At),
	}
}

// lastValues has the last value of each name, as the events do.
func lastValues[M ~map[string][]string](m M) map[string]string {
	out := make(map[string]string, len(m))
	for name, values := range m {
		if len(values) > 0 {
			out[name] = values[len(values)-1]
		}
	}
	return out
}

func (h *handler) messageEvent(e gateway.FrameEvent, p *peer) events.APIGatewayWebsocketProxyRequest {
	out := events.APIGatewayWebsocketProxyRequest{
		StageVariables: h.variables(),
		RequestContext: h.context("$default", record.Message, e.Conn, p, e.At),
	}
	out.RequestContext.MessageID = out.RequestContext.RequestID
	switch {
	case e.Oversize:
		out.StageVariables[record.OversizeVariable] = strconv.FormatInt(e.Size, 10)
	case e.Text:
		out.Body = string(e.Data)
	default:
		out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(e.Data), true
	}
	return out
}

func (h *handler) disconnectEvent(e gateway.DisconnectEvent, p *peer) events.APIGatewayWebsocketProxyRequest {
	out := events.APIGatewayWebsocketProxyRequest{
		StageVariables: h.variables(),
		RequestContext: h.context("$disconnect", record.Disconnect, e.Conn, p, e.At),
	}
	out.RequestContext.DisconnectStatusCode = int64(e.Code)
	out.RequestContext.DisconnectReason = &e.Reason
	return out
}

func peerOf(e gateway.ConnectEvent) *peer {
	p := &peer{connectedAt: e.At}
	if e.RemoteIP.IsValid() {
		p.sourceIP = e.RemoteIP.String()
	}
	p.userAgent = userAgent(e.Header)
	return p
}

// userAgent is cut, and copied so that it does not keep the whole header in memory.
func userAgent(h http.Header) string {
	ua := h.Get("User-Agent")
	return strings.Clone(strings.ToValidUTF8(ua[:min(len(ua), maxUserAgent)], ""))
}
