package server

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

// origin is who sent a request, and how.
type origin struct {
	// ip is the client's address; invalid if the transport has none.
	ip netip.Addr
	// secure says that the client came over TLS.
	secure bool
}

// originOf looks at the transport, and at what a proxy says only if that proxy
// is trusted: anyone else could claim anything.
func (s *Server) originOf(r *http.Request) origin {
	peer := peerAddr(r.RemoteAddr)
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

// forwardedFor walks the list from the right, the end that our own proxies wrote, to the first address
// that is not one of them. If all are ours the request started at the left one.
// A list that cannot be read up to there says nothing.
func (s *Server) forwardedFor(values []string) (netip.Addr, bool) {
	if len(values) == 0 {
		return netip.Addr{}, false
	}
	list := strings.Split(strings.Join(values, ","), ",")
	var client netip.Addr
	for i := len(list) - 1; i >= 0; i-- {
		a, ok := parseAddr(strings.TrimSpace(list[i]))
		if !ok {
			return netip.Addr{}, false
		}
		client = a
		if !s.trusts(a) {
			break
		}
	}
	return client, true
}

// forwardedSecure wants every hop to say TLS: a proxy that appends instead of
// setting lets the client write the first word.
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

// peerAddr reads an http.Request's RemoteAddr.
func peerAddr(s string) netip.Addr {
	a, _ := parseAddr(s)
	return a
}

// parseAddr takes an address with or without port, as proxies write both.
func parseAddr(s string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return plain(ap.Addr()), true
	}
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err == nil {
		return plain(a), true
	}
	return netip.Addr{}, false
}

// plain is the form in which addresses are compared: an IPv4 address is one,
// however it was written, and a zone means nothing elsewhere.
func plain(a netip.Addr) netip.Addr {
	return a.Unmap().WithZone("")
}

type remoteIPKey struct{}

// RemoteIP is the client's address of a request that [Options].HTTP serves: the
// peer's, or what a trusted proxy has forwarded. It is false where the transport
// has no IP address.
func RemoteIP(ctx context.Context) (netip.Addr, bool) {
	a, _ := ctx.Value(remoteIPKey{}).(netip.Addr)
	return a, a.IsValid()
}
