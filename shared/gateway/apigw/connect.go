package apigw

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/shared/gateway"
)

const protocolHeader = "Sec-Websocket-Protocol"

// Connect handles $connect. The status and headers of the answer reach the client, its
// body perhaps not. After an error API Gateway refuses the connection with a 5xx status.
func (a *Adapter) Connect(ctx context.Context, e events.APIGatewayWebsocketProxyRequest) (events.APIGatewayProxyResponse, error) {
	ev, err := a.connectEvent(ctx, e)
	if err != nil {
		return events.APIGatewayProxyResponse{}, fmt.Errorf("failed to read a connect event: %w", err)
	}
	res, err := a.o.Handler.Connect(ctx, ev)
	if err != nil {
		return events.APIGatewayProxyResponse{}, err
	}
	if !res.Accepted() {
		return refusal(res), nil
	}
	if len(res.First) > 0 {
		if err := a.sendFirst(ctx, ev.Conn, ev.At, res.First); err != nil {
			return events.APIGatewayProxyResponse{}, err
		}
	}
	out := events.APIGatewayProxyResponse{StatusCode: http.StatusOK}
	// A client that offers subprotocols fails if the server chooses none.
	if p := firstProtocol(ev.Header); p != "" {
		out.Headers = map[string]string{"Sec-WebSocket-Protocol": p}
	}
	return out, nil
}

func refusal(res gateway.ConnectResult) events.APIGatewayProxyResponse {
	out := events.APIGatewayProxyResponse{StatusCode: res.Status, Body: string(res.Body)}
	for name, values := range res.Header {
		if len(values) == 0 {
			continue
		}
		if out.Headers == nil {
			out.Headers = make(map[string]string)
		}
		out.Headers[name] = strings.Join(values, ", ")
	}
	return out
}

func (a *Adapter) connectEvent(ctx context.Context, e events.APIGatewayWebsocketProxyRequest) (gateway.ConnectEvent, error) {
	rc := e.RequestContext
	c, err := a.conn(originOf(e))
	if err != nil {
		return gateway.ConnectEvent{}, err
	}
	ev := gateway.ConnectEvent{
		Conn: c, Header: Headers(e.Headers, e.MultiValueHeaders), Path: a.o.DefaultPath, At: a.at(rc.ConnectedAt),
		Query: merge(e.QueryStringParameters, e.MultiValueQueryStringParameters, func(name string) string { return name }),
	}
	ev.RemoteIP = a.RemoteIP(ctx, rc.Identity.SourceIP, ev.Header)
	if a.o.OriginHeader != "" {
		ev.Header.Del(a.o.OriginHeader)
	}
	if p := ev.Query[a.o.PathParameter]; len(p) > 0 {
		ev.Path = p[len(p)-1]
		delete(ev.Query, a.o.PathParameter)
	}
	return ev, nil
}

// Headers merges the two header maps of an event or an answer of API Gateway. Names may
// have any case.
func Headers(single map[string]string, multi map[string][]string) http.Header {
	return merge(single, multi, http.CanonicalHeaderKey)
}

// merge takes a name from multi, or from single if multi does not have it.
func merge(single map[string]string, multi map[string][]string, canonical func(string) string) map[string][]string {
	out := make(map[string][]string, len(single)+len(multi))
	for name, values := range multi {
		name = canonical(name)
		out[name] = append(out[name], values...)
	}
	for name, value := range single {
		if name = canonical(name); out[name] == nil {
			out[name] = []string{value}
		}
	}
	return out
}

// firstProtocol is the subprotocol that the client prefers.
func firstProtocol(h http.Header) string {
	for _, v := range h[protocolHeader] {
		for _, p := range strings.Split(v, ",") {
			if p = strings.TrimSpace(p); p != "" {
				return p
			}
		}
	}
	return ""
}

// RemoteIP is the address of the client of a request: source, the peer of API Gateway,
// or if that is CloudFront, the peer of CloudFront.
func (a *Adapter) RemoteIP(ctx context.Context, source string, h http.Header) netip.Addr {
	peer := gateway.ParseAddr(source)
	if !a.fromOrigin(ctx, h) {
		return peer
	}
	list := strings.Split(strings.Join(h["X-Forwarded-For"], ","), ",")
	last := len(list) - 1
	// API Gateway appends CloudFront's own address; a load balancer and our own front
	// behind it append it twice. The address before them is the one that CloudFront wrote.
	for last > 0 && peer.IsValid() && gateway.ParseAddr(list[last]) == peer {
		last--
	}
	if client := gateway.ParseAddr(list[last]); client.IsValid() {
		return client
	}
	return peer
}

// fromOrigin reports whether the request came through our CloudFront. If the check
// fails, it reports false: the limits per address then apply to CloudFront's addresses,
// but no client can claim the address of another.
func (a *Adapter) fromOrigin(ctx context.Context, h http.Header) bool {
	if a.o.Origin == nil || a.o.OriginHeader == "" {
		return false
	}
	values := h.Values(a.o.OriginHeader)
	if len(values) != 1 || values[0] == "" {
		return false
	}
	ok, err := a.o.Origin(ctx, values[0])
	if err != nil {
		a.o.Log.WarnContext(ctx, "failed to check where a connection comes from", "error", err)
		return false
	}
	return ok
}
