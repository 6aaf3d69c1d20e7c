package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/dialect/skald/skaldpb"
)

// answerMost is how much of an HTTP answer is looked at, in bytes.
const answerMost = 4 << 10

// checkHTTP asks for the health page, and notes the relay's clock.
func (d *doctor) checkHTTP(ctx context.Context) check {
	u := *d.url
	u.Scheme, u.Path, u.RawPath, u.RawQuery = strings.Replace(u.Scheme, "ws", "http", 1), "/healthz", "", ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return d.broke("Is the URL right?", "no request: %s", plainError(err))
	}
	begin := d.now()
	resp, err := d.client().Do(req)
	if err != nil {
		if isTimeout(err) {
			return d.broke("The relay takes connections and does not answer. Is it overloaded? Restart it, and look into its log.",
				"no answer within %v", d.timeout)
		}
		return d.broke("Is this the port for clients? Does something else than a relay listen there?", "no HTTP: %s", plainError(err))
	}
	defer resp.Body.Close()
	d.found.date, d.found.dateAt = resp.Header.Get("Date"), d.now()
	if resp.StatusCode == http.StatusOK {
		return passed("/healthz answers 200 in %s", span(d.found.dateAt.Sub(begin)))
	}
	if strings.HasSuffix(d.url.Hostname(), ".amazonaws.com") {
		return skipped("Amazon's API Gateway has no health page")
	}
	advice := "If all that follows is well, apps can use the relay, but monitoring cannot. A proxy in front of it may not pass /healthz on."
	if d.url.Scheme == "ws" {
		advice = asAboveTLS
	}
	return failed(advice, "/healthz answers %s instead of 200", httpAnswer(resp))
}

const (
	becauseOfAbove = "not possible because of the above"
	asAboveTLS     = "As above: use wss://."
)

// skewMost is how far clocks may be apart: apps show the times of the other side.
const skewMost = 30 * time.Second

func (d *doctor) checkClock(context.Context) check {
	if d.found.broken && d.found.date == "" {
		return skipped(becauseOfAbove)
	}
	theirs, err := http.ParseTime(d.found.date)
	if err != nil {
		return skipped("the relay has not said what time it is")
	}
	// Date has no fraction: it was cut, on average by half a second.
	skew := theirs.Add(500 * time.Millisecond).Sub(d.found.dateAt)
	switch {
	case skew > skewMost:
		return failed("Set the clock of this computer, or that of the relay; both should follow the network (NTP). Certificates and times in messages depend on it.",
			"the relay's clock is %s ahead of this computer's", skew.Abs().Round(time.Second))
	case skew < -skewMost:
		return failed("Set the clock of the relay, or that of this computer; both should follow the network (NTP). Certificates and times in messages depend on it.",
			"the relay's clock is %s behind this computer's", skew.Abs().Round(time.Second))
	}
	return passed("the relay's is within %s of this computer's", max(skew.Abs().Round(time.Second), time.Second))
}

// refusalKeeper keeps the answer to an upgrade.
type refusalKeeper struct {
	next   http.RoundTripper
	answer string // "" for 101
	status int
}

func (k *refusalKeeper) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := k.next.RoundTrip(r)
	if err == nil {
		if k.status = resp.StatusCode; k.status != http.StatusSwitchingProtocols {
			k.answer = httpAnswer(resp)
		}
	}
	return resp, err
}

func (d *doctor) checkUpgrade(ctx context.Context) check {
	client := d.client()
	keeper := &refusalKeeper{next: client.Transport}
	client.Transport = keeper
	begin := d.now()
	conn, err := skaldclient.Dial(ctx, d.url.String(), skaldclient.DialOptions{HTTPClient: client})
	path := printable(d.url.Path)
	switch {
	case err == nil:
		d.found.conn = conn
		return passed("%s opens in %s", path, span(d.now().Sub(begin)))
	case isTimeout(err):
		return d.broke("Something takes the connection and does not answer on this path. A proxy may wait for a relay that does not run.",
			"%s does not answer within %v", path, d.timeout)
	case keeper.status == 0:
		return d.broke("Something on the way ends the connection. A proxy in front of the relay may not know WebSocket.", "%s does not answer: %s", path, plainError(err))
	case keeper.answer == "":
		return d.broke("A proxy in front of the relay may not know WebSocket.", "%s opens, but not as WebSocket: %s", path, plainError(err))
	}
	return d.broke(d.upgradeAdvice(keeper.status), "%s answers %s instead of opening", path, keeper.answer)
}

func (d *doctor) upgradeAdvice(status int) string {
	if d.url.Scheme == "ws" {
		return asAboveTLS
	}
	switch status {
	case http.StatusNotFound:
		if d.url.Path != skaldclient.DefaultPath {
			return "There is nothing at this path. Relays are at " + skaldclient.DefaultPath + ": leave the path out."
		}
		return "There is no relay at this path. Is this the right host? Does a proxy in front of the relay pass this path on?"
	case http.StatusForbidden:
		return "If the relay is behind a proxy: does the relay trust it (--behind-proxy), and does it set X-Forwarded-Proto?"
	case http.StatusTooManyRequests:
		return "This address has opened too many connections. Wait a minute. If this happens to many: does the relay know the clients' addresses behind its proxy (--behind-proxy)?"
	case http.StatusUpgradeRequired, http.StatusBadRequest, http.StatusOK:
		return "Something on the way has removed the WebSocket upgrade from the request, or does not know it. Set up the proxy in front of the relay for WebSocket (HTTP/1.1, Upgrade, Connection)."
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return "Use the URL that it points to; apps do not follow."
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "The proxy does not reach the relay, or the relay is full or ending. Does it run?"
	}
	return "This does not look like a relay. Is the URL right?"
}

func (d *doctor) checkChallenge(ctx context.Context) check {
	begin := d.now()
	f, err := d.found.conn.Receive(ctx)
	const notSkald = "What listens here speaks WebSocket, but not the Skald protocol, version 2. Is the URL right?"
	switch {
	case isTimeout(err):
		return d.broke(notSkald+" If it is: the relay may be stuck, restart it.", "the relay says nothing within %v; it should speak first", d.timeout)
	case errors.Is(err, skaldclient.ErrProtocol):
		return d.broke(notSkald, "the first message is not of the Skald protocol")
	case err != nil:
		return d.broke("The log of the relay may say more.", "the connection has ended: %s", printable(err.Error()))
	case f.GetChallenge() == nil:
		return d.broke(notSkald, "the first message is no challenge")
	case len(f.GetChallenge().GetNonce()) != skaldclient.KeySize:
		return d.broke(notSkald, "the challenge has %d bytes instead of %d", len(f.GetChallenge().GetNonce()), skaldclient.KeySize)
	}
	d.found.nonce = f.GetChallenge().GetNonce()
	return passed("%d bytes, %s after the opening", len(d.found.nonce), span(d.now().Sub(begin)))
}

// checkAuth authenticates as a new agent, which will not come back.
func (d *doctor) checkAuth(ctx context.Context) check {
	if d.noAuth {
		return skipped("because of --no-auth")
	}
	id, err := skaldclient.GenerateIdentity(d.rand)
	if err != nil {
		return d.broke("This computer gives no random numbers.", "no keys: %s", plainError(err))
	}
	begin := d.now()
	reply, err := skaldclient.AgentAuth(id)(d.found.nonce)
	if err == nil {
		err = d.found.conn.Send(ctx, reply)
	}
	if err != nil {
		return d.broke("The log of the relay may say more.", "the answer to the challenge could not be sent: %s", plainError(err))
	}
	f, err := d.found.conn.Receive(ctx)
	if err != nil {
		if isTimeout(err) {
			return d.broke("Its database may be stuck: is its disk full? Look into its log.", "no answer within %v", d.timeout)
		}
		return d.broke("The log of the relay may say more.", "the connection has ended: %s", printable(err.Error()))
	}
	ns := id.Namespace()
	switch {
	case f.GetAuthError() != nil:
		e := f.GetAuthError()
		return d.broke("The log of the relay may say more. Keys that are good were refused, so apps cannot get in either.",
			"refused: %s: %s", printable(e.GetCode()), printable(e.GetMessage()))
	case f.GetAuthOk() == nil:
		return d.broke("The relay does not keep to the Skald protocol, version 2.", "the answer is neither yes nor no (%T)", f.GetFrame())
	case !bytes.Equal(f.GetAuthOk().GetNamespaceId(), ns[:]):
		return d.broke("The relay does not keep to the Skald protocol, version 2.", "the relay has let us in, but into another namespace than ours")
	}
	return passed("a new agent gets in, in %s; its namespace ends by itself", span(d.now().Sub(begin)))
}

// pings is how many round trips are measured.
const pings = 5

func (d *doctor) checkPing(ctx context.Context) check {
	var took []time.Duration
	for range pings {
		begin := d.now()
		if err := d.found.conn.Ping(ctx); err != nil {
			if isTimeout(err) {
				return d.broke("A proxy on the way may not pass pings on. Connections will be taken for dead and closed.", "no answer to a ping within %v", d.timeout)
			}
			return d.broke("The log of the relay may say more.", "the connection has ended: %s", plainError(err))
		}
		took = append(took, d.now().Sub(begin))
	}
	slices.Sort(took)
	if d.noAuth {
		return passed("%s (of %d pings)", span(took[pings/2]), pings)
	}
	begin := d.now()
	if err := d.presence(ctx); err != nil {
		return d.broke("The relay answers pings, but no requests. The log of the relay may say more.", "no answer to a request: %s", plainError(err))
	}
	return passed("%s (of %d pings); %s for a request", span(took[pings/2]), pings, span(d.now().Sub(begin)))
}

// presence asks who is online: a request that changes nothing.
func (d *doctor) presence(ctx context.Context) error {
	err := d.found.conn.Send(ctx, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}})
	if err != nil {
		return err
	}
	for {
		f, err := d.found.conn.Receive(ctx)
		switch {
		case err != nil:
			return err
		case f.GetError() != nil:
			return fmt.Errorf("%s: %s", printable(f.GetError().GetCode()), printable(f.GetError().GetMessage()))
		case f.GetPresenceList() != nil:
			return nil
		}
	}
}

// httpAnswer describes the answer of a server: the status, and the relay's error or the
// target of a redirect.
func httpAnswer(resp *http.Response) string {
	answer := printable(resp.Status)
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerMost))
	if err != nil {
		return answer
	}
	var said struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &said) == nil && said.Error != "" {
		return fmt.Sprintf("%s (%.40s: %.200s)", answer, printable(said.Error), printable(said.Message))
	}
	if to := resp.Header.Get("Location"); to != "" {
		return fmt.Sprintf("%s (to %.200s)", answer, printable(to))
	}
	return answer
}
