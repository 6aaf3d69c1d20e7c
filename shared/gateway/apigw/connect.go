package apigw

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/shared/gateway"
)

const protocolHeader = "Sec-Websocket-Protocol"

// Connect handles $connect. Status and headers of the answer reach the client, a
// body perhaps not. An error is for Lambda: API Gateway refuses the connection
// with a 5xx status then.
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
	// A client that offers protocols and is given none fails.
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
		Conn: c, Header: headerOf(e), Query: queryOf(e), Path: a.o.DefaultPath, At: a.at(rc.ConnectedAt),
	}
	ev.RemoteIP = a.remoteIP(ctx, rc.Identity.SourceIP, ev.Header)
	if a.o.OriginHeader != "" {
		ev.Header.Del(a.o.OriginHeader)
	}
	if p := ev.Query[a.o.PathParameter]; len(p) > 0 {
		ev.Path = p[len(p)-1]
		delete(ev.Query, a.o.PathParameter)
	}
	return ev, nil
}

// headerOf gathers the headers, whatever their case.
func headerOf(e events.APIGatewayWebsocketProxyRequest) http.Header {
	h := make(http.Header, len(e.MultiValueHeaders))
	for name, values := range e.MultiValueHeaders {
		name = http.CanonicalHeaderKey(name)
		h[name] = append(h[name], values...)
	}
	for name, value := range e.Headers {
		if name = http.CanonicalHeaderKey(name); h[name] == nil {
			h[name] = []string{value}
		}
	}
	return h
}

func queryOf(e events.APIGatewayWebsocketProxyRequest) url.Values {
	q := make(url.Values, len(e.MultiValueQueryStringParameters))
	for name, values := range e.MultiValueQueryStringParameters {
		q[name] = append(q[name], values...)
	}
	for name, value := range e.QueryStringParameters {
		if q[name] == nil {
			q[name] = []string{value}
		}
	}
	return q
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

// RemoteIP is the address of the client of a request that has come by way of an HTTP
// API next to this front: source is the peer of API Gateway.
func (a *Adapter) RemoteIP(ctx context.Context, source string, h http.Header) netip.Addr {
	return a.remoteIP(ctx, source, h)
}

// remoteIP is the address of the client: the peer of API Gateway, or if that is
// CloudFront, the one that CloudFront has seen.
func (a *Adapter) remoteIP(ctx context.Context, source string, h http.Header) netip.Addr {
	peer := parseAddr(source)
	if !a.fromOrigin(ctx, h) {
		return peer
	}
	list := strings.Split(strings.Join(h["X-Forwarded-For"], ","), ",")
	last := len(list) - 1
	// API Gateway has appended CloudFront's own address; a load balancer and our own
	// front behind it have done so both. Before them stands what CloudFront has written.
	for last > 0 && peer.IsValid() && parseAddr(list[last]) == peer {
		last--
	}
	if client := parseAddr(list[last]); client.IsValid() {
		return client
	}
	return peer
}

// fromOrigin reports whether the request has come through our CloudFront. If that
// cannot be found out, it has not: the limits per address are then those of
// CloudFront's addresses, but nobody can claim one.
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

// parseAddr reads an address with or without a port.
func parseAddr(s string) netip.Addr {
	s = strings.TrimSpace(s)
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}
