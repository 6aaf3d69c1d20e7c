package server

import (
	"context"
	"net/http"
	"net/netip"
	"strings"

	"blindpost/shared/gateway"
)

// origin is where a request came from.
type origin struct {
	// ip is the client's address; invalid if the transport has none.
	ip netip.Addr
	// secure says that the client came over TLS.
	secure bool
}

// originOf reads the origin from the transport. It believes X-Forwarded headers only
// from a trusted proxy, as any other peer could claim anything.
func (s *Server) originOf(r *http.Request) origin {
	peer := gateway.ParseAddr(r.RemoteAddr)
	o := origin{ip: peer, secure: r.TLS != nil}
	if !s.trusts(peer) {
		return o
	}
	if client, ok := s.forwardedFor(r.Header.Values("X-Forwarded-For")); ok {
		o.ip = client
	}
	if !o.secure {
		o.secure = forwardedSecure(r.Header.Values("X-Forwarded-Proto"))
	}
	return o
}

func (s *Server) trusts(a netip.Addr) bool {
	for _, p := range s.o.TrustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// forwardedFor walks the list from the right, the end that our own proxies wrote, to
// the first address that is not one of them. If all are proxies, the leftmost is the
// client. If an address on the way cannot be parsed, it reports false.
func (s *Server) forwardedFor(values []string) (netip.Addr, bool) {
	if len(values) == 0 {
		return netip.Addr{}, false
	}
	list := strings.Split(strings.Join(values, ","), ",")
	var client netip.Addr
	for i := len(list) - 1; i >= 0; i-- {
		a := gateway.ParseAddr(list[i])
		if !a.IsValid() {
			return netip.Addr{}, false
		}
		client = a
		if !s.trusts(a) {
			break
		}
	}
	return client, true
}

// forwardedSecure requires TLS on every hop: if a proxy appends to the header instead
// of setting it, the client wrote the first value.
func forwardedSecure(values []string) bool {
	if len(values) == 0 {
		return false
	}
	for _, v := range strings.Split(strings.Join(values, ","), ",") {
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "https", "wss":
		default:
			return false
		}
	}
	return true
}

type remoteIPKey struct{}

// RemoteIP is the client's address of a request that [Options].HTTP serves: that of
// the peer, or the one that a trusted proxy forwarded. It reports false if the
// transport has no IP address.
func RemoteIP(ctx context.Context) (netip.Addr, bool) {
	a, _ := ctx.Value(remoteIPKey{}).(netip.Addr)
	return a, a.IsValid()
}
