// Package awsclient is what lies between a client of AWS and net/http. It knows no
// service and imports nothing of AWS, so that every adapter may use it.
package awsclient

import (
	"io"
	"net/http"
)

// Client is what the clients of AWS ask of an HTTP client.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Patient makes a client that hears answers out. The SDK (smithy-go 1.28) closes the
// body of a request as soon as the answer begins, and the body then answers io.EOF
// to WriteTo, which is an error there. When that happens before net/http has looked
// whether the body goes on, it takes the connection for broken and closes it under
// the reader of the answer: one request in some two thousand, on a busy machine with
// a server beside it. The request was done, and looks as if it had failed. Without
// WriteTo the body is read, and io.EOF is no error.
func Patient(c Client) Client { return patient{c} }

type patient struct{ Client }

var _ Client = patient{}

// Do implements Client.
func (c patient) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.Client.Do(r)
}
