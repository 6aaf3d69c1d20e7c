package apigw

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/remote/callback"
)

// Connections of our own fronts (package invoke) use the same functions as those of
// API Gateway. Their gateway.Conn is "ID@front+ADDRESS", where ADDRESS is the callback
// address of the front. Their messages stay binary or text in both directions, and
// their front has close codes.

const remoteScheme = "front+"

// RemoteFront acts on the connections of one front of our own.
type RemoteFront interface {
	Post(ctx context.Context, id string, m gateway.Message) (gateway.Outcome, error)
	Close(ctx context.Context, id string, code gateway.CloseCode, reason string) error
	Stat(ctx context.Context, id string) (gateway.Stat, error)
}

var _ RemoteFront = (*callback.Client)(nil)

// CheckFront checks the callback address of a front of our own. Requests to it carry a
// secret, so without TLS they must not leave the machine or its network.
func CheckFront(address string) error {
	if err := CheckEndpoint(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("callback address is not a URL")
	}
	if u.Scheme != "https" && !isPrivateHost(u.Hostname()) {
		return errors.New("callback address is not https, and its host is not a private address, localhost or a name below .internal")
	}
	return nil
}

func isPrivateHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost" || strings.HasSuffix(host, ".internal")
	}
	return addr.IsLoopback() || addr.IsPrivate()
}

// remoteConn makes the gateway.Conn of a connection of a front of our own. It refuses
// an address that is not in allowed, as an event could name any.
func remoteConn(id, address string, allowed []string) (gateway.Conn, error) {
	if !callback.ValidID(id) {
		return "", errors.New("connection id is not valid")
	}
	if !slices.Contains(allowed, address) {
		return "", errors.New("the callback address of the connection is none of the allowed fronts")
	}
	return gateway.Conn(id + "@" + remoteScheme + address), nil
}

func splitRemote(c gateway.Conn) (id, address string, ok bool) {
	id, address, ok = strings.Cut(string(c), "@")
	if !ok {
		return "", "", false
	}
	address, ok = strings.CutPrefix(address, remoteScheme)
	return id, address, ok && callback.ValidID(id)
}

// isExecuteAPI reports whether an address belongs to API Gateway itself. Without a
// custom domain events name only such addresses.
func isExecuteAPI(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.Port() != "" {
		return false
	}
	labels := strings.Split(u.Hostname(), ".")
	return len(labels) >= 5 && labels[1] == "execute-api" &&
		(strings.HasSuffix(u.Hostname(), ".amazonaws.com") || strings.HasSuffix(u.Hostname(), ".amazonaws.com.cn"))
}

// AllowEndpoints makes FrontOptions.Allowed: it allows callbackURL, or if that is empty,
// every API of API Gateway.
func AllowEndpoints(callbackURL string) func(endpoint string) bool {
	if callbackURL == "" {
		return isExecuteAPI
	}
	return func(endpoint string) bool { return endpoint == callbackURL }
}

// remoteTarget is a front of our own.
type remoteTarget struct{ RemoteFront }

// classify implements target. When the time of the caller is over, no retry helps.
func (remoteTarget) classify(ctx context.Context, err error) (again bool, _ error) {
	return ctx.Err() == nil && callback.Again(err), err
}

func isRemote(t target) bool {
	_, ok := t.(remoteTarget)
	return ok
}

// refusedToConnect reports whether no process listens at the address.
func refusedToConnect(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED)
}
