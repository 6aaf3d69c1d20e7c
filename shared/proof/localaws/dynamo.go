//go:build unix

package localaws

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Dynamo is a running dynoxide.
type Dynamo struct {
	URL  string
	stop func()
}

// StartDynamo starts dynoxide by way of .ci/standins/dynamo, which builds it if need be,
// or takes the one that the variable names.
func StartDynamo(root string) (*Dynamo, error) {
	if u := os.Getenv("BLINDPOST_DYNAMO_ENDPOINT"); u != "" {
		return &Dynamo{u, func() {}}, nil
	}
	cmd := exec.Command(filepath.Join(root, ".ci/standins/dynamo"), "serve")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // it ends with this process, and the stand-in with it
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &Dynamo{stop: func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		d.stop()
		return nil, fmt.Errorf("failed to start the stand-in for DynamoDB: %w", err)
	}
	d.URL = strings.TrimSpace(line)
	return d, nil
}

// Close ends it, if it was started here.
func (d *Dynamo) Close() { d.stop() }

// tableProxy is between the functions and dynoxide: it puts right in what dynoxide is
// unlike DynamoDB, and fails as DynamoDB can.
type tableProxy struct {
	proxy *httputil.ReverseProxy

	mu    sync.Mutex
	fault func(operation string, body []byte) TableFault
}

// TableFault is what goes wrong with one request to the table.
type TableFault int

// The faults.
const (
	TableSound TableFault = iota
	// TableThrottled refuses it.
	TableThrottled
	// TableSilent does it and loses the answer.
	TableSilent
)

func newTableProxy(target string) (*tableProxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	p := &tableProxy{}
	p.proxy = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(u) },
		ModifyResponse: faithful,
		Transport:      &http.Transport{MaxIdleConnsPerHost: 256},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			awsError(w, http.StatusInternalServerError, "com.amazonaws.dynamodb.v20120810#InternalServerError")
		},
	}
	return p, nil
}

// ServeHTTP implements http.Handler.
func (p *tableProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	fault := p.fault
	p.mu.Unlock()
	kind := TableSound
	if fault != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		kind = fault(operation, body)
	}
	switch kind {
	case TableThrottled:
		awsError(w, http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ThrottlingException")
	case TableSilent:
		p.proxy.ServeHTTP(&deaf{header: http.Header{}}, r)
		panic(http.ErrAbortHandler) // the connection breaks
	default:
		p.proxy.ServeHTTP(w, r)
	}
}

// deaf takes an answer that nobody gets.
type deaf struct{ header http.Header }

func (d *deaf) Header() http.Header         { return d.header }
func (d *deaf) Write(b []byte) (int, error) { return len(b), nil }
func (d *deaf) WriteHeader(int)             {}

func (p *tableProxy) fail(f func(operation string, body []byte) TableFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// faithful takes the old item out of the answer to an UpdateItem that has created one:
// dynoxide says there was one with nothing but its key.
func faithful(r *http.Response) error {
	if !strings.HasSuffix(r.Request.Header.Get("X-Amz-Target"), ".UpdateItem") || r.StatusCode != http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return err
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(body, &out); err != nil {
		return errors.New("answer of the stand-in is not JSON")
	}
	var item map[string]json.RawMessage
	if json.Unmarshal(out["Attributes"], &item) == nil && len(item) > 0 && onlyKeys(item) {
		delete(out, "Attributes")
		if body, err = json.Marshal(out); err != nil {
			return err
		}
		r.Header.Del("X-Amz-Crc32")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

func onlyKeys(item map[string]json.RawMessage) bool {
	for name := range item {
		if name != "pk" && name != "sk" {
			return false
		}
	}
	return true
}
