package apigw

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"blindpost/shared/gateway"
)

// A gateway.Conn of this front is "ID@ENDPOINT": API Gateway's id of the connection, and
// the address of @connections without a slash at the end.

const maxConnectionID = 128

func newConn(id, endpoint string) (gateway.Conn, error) {
	if !validConnectionID(id) {
		return "", errors.New("connection id is not valid")
	}
	if err := CheckEndpoint(endpoint); err != nil {
		return "", err
	}
	return gateway.Conn(id + "@" + endpoint), nil
}

func validConnectionID(id string) bool {
	if id == "" || len(id) > maxConnectionID {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' || c == '@' {
			return false
		}
	}
	return true
}

// CheckEndpoint checks a callback address: http or https, a host, perhaps a path,
// nothing else, and no slash at the end.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("callback address is not a URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("callback address is neither https nor http")
	case u.Hostname() == "":
		return errors.New("callback address has no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("callback address has more than a host and a path")
	case strings.HasSuffix(endpoint, "/"):
		return errors.New("callback address ends in a slash")
	}
	return nil
}

// endpointOf is the callback address of an API that has no custom domain.
func endpointOf(domain, stage string) (string, error) {
	u := url.URL{Scheme: "https", Host: domain, Path: "/" + stage}
	endpoint := u.String()
	if domain == "" || stage == "" || strings.ContainsAny(domain, "/?#@") {
		return "", fmt.Errorf("event has no callback address: domain %.60q, stage %.60q", domain, stage)
	}
	return endpoint, nil
}

// split returns the parts of a Conn, or false if it is not one of API Gateway.
func split(c gateway.Conn) (id, endpoint string, ok bool) {
	id, endpoint, ok = strings.Cut(string(c), "@")
	if !ok || !validConnectionID(id) || CheckEndpoint(endpoint) != nil {
		return "", "", false
	}
	return id, endpoint, true
}

// GroupID maps a group of jobs to a message group of the ingress queue. For a group
// named after a connection it is the group of the connection's frames; it returns any
// other group unchanged.
func GroupID(group string) string {
	if id, _, ok := split(gateway.Conn(group)); ok {
		return id
	}
	if id, _, ok := splitRemote(gateway.Conn(group)); ok {
		return id
	}
	return group
}
