// Package awsclient wraps the HTTP client of an AWS SDK client. It imports nothing
// of AWS, so that every adapter may use it.
package awsclient

import (
	"io"
	"net/http"
)

// Client is the interface of an HTTP client in the AWS SDK.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// WithoutWriteTo makes a client that hides the WriteTo method of request bodies. The SDK
// (smithy-go 1.28) closes the body of a request as soon as the response begins. WriteTo
// of a closed body returns io.EOF, which is an error there. If net/http calls it to see
// whether the body goes on, it takes the connection for broken and closes it while the
// response is being read: one request in about two thousand on a busy machine with a
// server beside it. The request was done but seems to have failed. Without WriteTo
// net/http calls Read, for which io.EOF is no error.
func WithoutWriteTo(c Client) Client { return withoutWriteTo{c} }

type withoutWriteTo struct{ Client }

// Do implements Client.
func (c withoutWriteTo) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.Client.Do(r)
}
