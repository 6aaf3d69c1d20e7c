package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"blindpost/shared/gateway"
)

// maxAnswer is the most bytes that the client reads of an answer.
const maxAnswer = 64 << 10

// Secret is the shared secret; *secret.Rotating implements it.
type Secret interface {
	// Current is the secret to send.
	Current(ctx context.Context) (string, error)
	// Forget drops a secret that the front refused, so that the next
	// Current reads it again. It reports whether that may give another secret.
	Forget() bool
}

// Client acts on the connections of one front. It is safe for concurrent use.
type Client struct {
	address string
	secret  Secret
	http    *http.Client
}

// NewClient makes a client for the front with this callback address, which must have
// been checked. transport may be nil for a new one.
func NewClient(address string, s Secret, transport http.RoundTripper) *Client {
	if transport == nil {
		transport = NewTransport()
	}
	return &Client{address: address, secret: s, http: &http.Client{
		Transport: transport,
		// A front never redirects, and a redirect would send the secret elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// NewTransport makes a transport for clients of fronts. It uses no proxy, which would
// see the secret.
func NewTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		TLSHandshakeTimeout: 2 * time.Second,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     30 * time.Second, // less than the front's
		DisableCompression:  true,
	}
}

// StatusError is an unexpected answer. It repeats no text of the answer.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return fmt.Sprintf("front answered with status %d", e.Status)
}

// refusedError says that the front refused our secret; again, that the next attempt may
// use another one.
type refusedError struct{ again bool }

func (e *refusedError) Error() string { return "front has refused the shared secret" }

// Again reports whether a retry may help after err.
func Again(err error) bool {
	var status *StatusError
	var refused *refusedError
	switch {
	case errors.Is(err, gateway.ErrGone), errors.Is(err, gateway.ErrTooLarge):
		return false
	case errors.As(err, &refused):
		return refused.again
	case errors.As(err, &status):
		return status.Status == http.StatusTooManyRequests || status.Status >= 500
	}
	return true // no answer at all
}

// Post sends a message. The outcome is gateway.Sent or gateway.Dropped.
func (c *Client) Post(ctx context.Context, id string, m gateway.Message) (gateway.Outcome, error) {
	header := http.Header{FrameHeader: {Binary}, "Content-Type": {"application/octet-stream"}}
	if m.Text {
		header.Set(FrameHeader, Text)
	}
	if m.Droppable {
		header.Set(DroppableHeader, "true")
	}
	status, _, err := c.do(ctx, request{method: http.MethodPost, id: id, header: header, body: m.Data})
	switch {
	case err != nil:
		return 0, err
	case status == http.StatusAccepted:
		return gateway.Dropped, nil
	}
	return gateway.Sent, nil
}

// Close ends the connection.
func (c *Client) Close(ctx context.Context, id string, code gateway.CloseCode, reason string) error {
	q := url.Values{codeParam: {strconv.Itoa(int(code))}}
	if reason != "" {
		q.Set(reasonParam, reason)
	}
	_, _, err := c.do(ctx, request{method: http.MethodDelete, id: id, query: q})
	return err
}

// Stat returns the status of the connection.
func (c *Client) Stat(ctx context.Context, id string) (gateway.Stat, error) {
	_, body, err := c.do(ctx, request{method: http.MethodGet, id: id})
	if err != nil {
		return gateway.Stat{}, err
	}
	var s stat
	if json.Unmarshal(body, &s) != nil || s.ConnectedAt.IsZero() {
		return gateway.Stat{}, errors.New("answer of the front cannot be decoded")
	}
	return gateway.Stat{ConnectedAt: s.ConnectedAt, LastActiveAt: s.LastActiveAt}, nil
}

type request struct {
	method, id string
	query      url.Values
	header     http.Header
	body       []byte
}

func (c *Client) do(ctx context.Context, q request) (status int, body []byte, _ error) {
	if !ValidID(q.id) {
		return 0, nil, gateway.ErrGone // never was a connection
	}
	current, err := c.secret.Current(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("failed to read the secret of the front: %w", err)
	}
	target := c.address + pathPart + url.PathEscape(q.id)
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, target, bytes.NewReader(q.body))
	if err != nil {
		return 0, nil, errors.New("callback address is not valid")
	}
	if q.header != nil {
		r.Header = q.header
	}
	r.Header.Set("Authorization", bearer+current)
	res, err := c.http.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("failed to reach the front: %w", withoutURL(err))
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode == http.StatusOK && err != nil {
		return 0, nil, fmt.Errorf("failed to read the answer of the front: %w", err)
	}
	return res.StatusCode, body, c.errorOf(res)
}

func (c *Client) errorOf(res *http.Response) error {
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return nil
	case http.StatusGone:
		return gateway.ErrGone
	case http.StatusRequestEntityTooLarge:
		return gateway.ErrTooLarge
	case http.StatusForbidden:
		return &refusedError{c.secret.Forget()}
	}
	return &StatusError{res.StatusCode}
}

// withoutURL takes the URL out of an error: a close reason is in it.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
