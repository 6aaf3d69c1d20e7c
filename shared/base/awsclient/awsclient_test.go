package awsclient_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"blindpost/shared/base/awsclient"
)

// hasty is a body as smithy-go makes it, once it has been closed: the end for Read,
// and an error for WriteTo.
type hasty struct {
	io.Reader
	asked chan struct{} // has room for one; filled by WriteTo
}

func newHasty() hasty { return hasty{strings.NewReader("hello"), make(chan struct{}, 1)} }

func (h hasty) WriteTo(io.Writer) (int64, error) {
	h.asked <- struct{}{}
	return 0, io.EOF
}
func (hasty) Close() error { return nil }

func TestAnswersAreHeardOut(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	call := func(c awsclient.Client, body io.ReadCloser) (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		if body != nil {
			r.ContentLength = 5
		}
		res, err := c.Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = res.Body.Close() }()
		got, err := io.ReadAll(res.Body)
		return string(got), err
	}
	// Without our client, net/http asks for WriteTo and takes its answer for a broken
	// connection. Whether the server's answer is heard before that is chance.
	bare := newHasty()
	_, _ = call(server.Client(), bare)
	select {
	case <-bare.asked:
	case <-time.After(10 * time.Second): // net/http uses WriteTo no more, and this package may go
		t.Fatal("WriteTo was not asked for")
	}
	c := awsclient.WithoutWriteTo(server.Client())
	for range 100 {
		body := newHasty()
		if got, err := call(c, body); err != nil || got != "hello" || len(body.asked) != 0 {
			t.Errorf("got %q, %v, asked for WriteTo %d times", got, err, len(body.asked))
		}
	}
	if got, err := call(c, nil); err != nil || got != "" {
		t.Errorf("got %q, %v", got, err)
	}
}
