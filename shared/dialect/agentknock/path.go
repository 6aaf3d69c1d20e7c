package agentknock

import "strings"

// route is the parsed path of an upgrade.
type route struct {
	role   string // as it is logged and counted
	first  string // the address, or the device
	second string // the request, or the client; "" for a device
}

// Roles.
const (
	rolePairing = "pairing"
	roleClient  = "client"
	roleDevice  = "device"
)

// routeOf reads a path. The ids in it may be anything but empty.
//
//	/v1/address/{address_id}/request/{request_id}
//	/v1/device/{device_id}/client/{client_id}
//	/v1/device/{device_id}
func routeOf(path string) (route, bool) {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		return route{}, false
	}
	p := strings.Split(rest, "/")
	switch {
	case len(p) == 4 && p[0] == "address" && p[2] == "request":
		return route{rolePairing, p[1], p[3]}, p[1] != "" && p[3] != ""
	case len(p) == 4 && p[0] == "device" && p[2] == "client":
		return route{roleClient, p[1], p[3]}, p[1] != "" && p[3] != ""
	case len(p) == 2 && p[0] == "device":
		return route{role: roleDevice, first: p[1]}, p[1] != ""
	}
	return route{}, false
}

// Serves reports whether path is one of the three upgrade paths.
func (d *Dialect) Serves(path string) bool {
	_, ok := routeOf(path)
	return ok
}

// valid reports whether the ids in a route have their form.
func (r route) valid() bool {
	switch r.role {
	case rolePairing:
		return validAddress(r.first) && validID(r.second)
	case roleClient:
		return validID(r.first) && validID(r.second)
	default:
		return validID(r.first)
	}
}
