package apigw

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/remote/callback"
)

// Connections of fronts of our own (package invoke) come to the same functions as
// those of API Gateway. Their gateway.Conn is "ID@front+ADDRESS", ADDRESS being the
// callback address of the front. Their messages travel as they are, binary or text, in
// both directions, and their front has close codes.

const remoteScheme = "front+"

// RemoteFront acts on the connections of one front of our own; *callback.Client has it.
type RemoteFront interface {
	Post(ctx context.Context, id string, m gateway.Message) (gateway.Outcome, error)
	Close(ctx context.Context, id string, code gateway.CloseCode, reason string) error
	Stat(ctx context.Context, id string) (gateway.Stat, error)
}

var _ RemoteFront = (*callback.Client)(nil)

// CheckFront checks the callback address of a front of our own. What is sent there
// carries a secret, so without TLS it must not leave the machine or its network.
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

// remoteConn names a connection of a front of our own. Only the addresses in allowed are
// ever called, whatever an event or a name in the table says.
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

// executeAPI reports whether an address is one of API Gateway itself: the only ones
// that events can name, if no custom domain is in front of it.
func isExecuteAPI(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.Port() != "" {
		return false
	}
	labels := strings.Split(u.Hostname(), ".")
	return len(labels) >= 5 && labels[1] == "execute-api" &&
		(strings.HasSuffix(u.Hostname(), ".amazonaws.com") || strings.HasSuffix(u.Hostname(), ".amazonaws.com.cn"))
}

// Allow makes FrontOptions.Allowed: calls go to callbackURL, or if that is empty, to
// any API of API Gateway, and to no other address.
func AllowEndpoints(callbackURL string) func(endpoint string) bool {
	if callbackURL == "" {
		return isExecuteAPI
	}
	return func(endpoint string) bool { return endpoint == callbackURL }
}

// remoteFront is the front of our own that a connection belongs to; nil if it is one of
// API Gateway. A connection of a front that is not allowed is gone.
func (f *Front) remoteFront(ctx context.Context, c gateway.Conn) (front RemoteFront, id string, err error) {
	if _, rest, ok := strings.Cut(string(c), "@"); !ok || !strings.HasPrefix(rest, remoteScheme) {
		return nil, "", nil
	}
	id, address, ok := splitRemote(c)
	if !ok || f.o.NewRemote == nil || !slices.Contains(f.o.Fronts, address) {
		return nil, "", gateway.ErrGone
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if front := f.remotes[address]; front != nil {
		return front, id, nil
	}
	front, err = f.o.NewRemote(ctx, address)
	if err != nil {
		return nil, "", fmt.Errorf("failed to make a client: %w", err)
	}
	if f.remotes == nil {
		f.remotes = make(map[string]RemoteFront)
	}
	f.remotes[address] = front
	return front, id, nil
}

// callRemote does one action on a front of our own, again and again while there is hope.
func (f *Front) callRemote(ctx context.Context, patience time.Duration, do func(context.Context) error) (again bool, _ error) {
	end := time.Now().Add(patience)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := f.attempt(ctx, do)
		if err == nil || ctx.Err() != nil {
			return false, err
		}
		again = callback.Again(err)
		d := pause - time.Duration(f.o.Random()*float64(pause/2))
		if again && time.Now().Add(d).After(end) && refusedToConnect(err) {
			// The process that has the connections listens at this address until the
			// last of them is closed: it is no more, and so are they.
			return false, gateway.ErrGone
		}
		if !again || time.Now().Add(d).After(end) {
			return again, err
		}
		if ctxErr := sleep(ctx, d); ctxErr != nil {
			return false, errors.Join(ctxErr, err)
		}
	}
}

// refusedToConnect reports whether nobody listens at the address.
func refusedToConnect(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED)
}

func (f *Front) postRemote(ctx context.Context, front RemoteFront, id string, m gateway.Message) (outcome gateway.Outcome, _ error) {
	patience := f.o.RetryFor
	if m.Droppable {
		patience = 0
	}
	again, err := f.callRemote(ctx, patience, func(ctx context.Context) (err error) {
		outcome, err = front.Post(ctx, id, m)
		return err
	})
	if err != nil && again && m.Droppable {
		return gateway.Dropped, nil
	}
	if err != nil {
		return 0, fmt.Errorf("failed to post: %w", err)
	}
	return outcome, nil
}

func (f *Front) closeRemote(ctx context.Context, front RemoteFront, id string, code gateway.CloseCode, reason string) error {
	if _, err := f.callRemote(ctx, f.o.RetryFor, func(ctx context.Context) error {
		return front.Close(ctx, id, code, reason)
	}); err != nil {
		return fmt.Errorf("failed to close: %w", err)
	}
	return nil
}

func (f *Front) statRemote(ctx context.Context, front RemoteFront, id string) (s gateway.Stat, _ error) {
	if _, err := f.callRemote(ctx, f.o.RetryFor, func(ctx context.Context) (err error) {
		s, err = front.Stat(ctx, id)
		return err
	}); err != nil {
		return gateway.Stat{}, fmt.Errorf("failed to look at a connection: %w", err)
	}
	return s, nil
}
