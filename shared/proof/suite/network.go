package suite

import (
	"fmt"
	"net"
	"net/url"
)

// Address is the host and port of a target's URL.
func Address(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		panic(fmt.Sprintf("Target.URL: %v", err))
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return u.Host
}
