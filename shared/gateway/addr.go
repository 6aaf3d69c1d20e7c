package gateway

import (
	"net/netip"
	"strings"
)

// ParseAddr parses an address with or without a port, in the forms that proxies write,
// to the form in which addresses are compared: a mapped IPv4 address becomes IPv4, and
// a zone, which means nothing on another machine, is dropped. The zero Addr means that
// s is no address.
func ParseAddr(s string) netip.Addr {
	s = strings.TrimSpace(s)
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	a, _ := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return a.Unmap().WithZone("")
}
