package awsclient_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blindpost/shared/base/awsclient"
)

// hasty is a body as smithy-go makes it, once it has been closed: the end for Read,
// and an error for WriteTo.
type hasty struct{ io.Reader }

func (hasty) WriteTo(io.Writer) (int64, error) { return 0, io.EOF }
func (hasty) Close() error                     { return nil }

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
	// So it goes without.
	if got, err := call(server.Client(), hasty{strings.NewReader("hello")}); err == nil {
		t.Errorf("got %q: net/http does not use WriteTo any more, and nothing has to be done about it", got)
	}
	c := awsclient.WithoutWriteTo(server.Client())
	if got, err := call(c, hasty{strings.NewReader("hello")}); err != nil || got != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := call(c, nil); err != nil || got != "" {
		t.Errorf("got %q, %v", got, err)
	}
}
