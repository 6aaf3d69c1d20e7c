package chaos

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"blindpost/shared/proof/port"
	"blindpost/shared/proof/rig"
)

// relay is the binary, started and ended again and again on the same address and
// the same data.
type relay struct {
	t       *testing.T
	files   string // folder for logs and scrapes, which outlives the test
	name    string
	command func(args ...string) *exec.Cmd
	started func(*exec.Cmd) error // if set, is called with each process
	args    []string
	address string
	metrics string
	data    string
	tls     *tls.Config

	process *exec.Cmd
	ended   chan struct{} // closed when process has been waited for
	status  error         // readable when ended is closed
	scrapes int
}

// newRelay prepares a relay. The flags come after, and win over, those that every
// scenario has: no limits on rates, and everything logged.
func newRelay(t *testing.T, binary, files, data string, flags ...string) *relay {
	t.Helper()
	r := &relay{
		t:       t,
		files:   files,
		name:    strings.ReplaceAll(t.Name(), "/", "-"),
		command: func(args ...string) *exec.Cmd { return exec.Command(binary, args...) },
		address: port.Reserve(t),
		metrics: port.Reserve(t),
		data:    data,
	}
	cert := rig.NewCertificate(t)
	r.tls = &tls.Config{RootCAs: cert.Roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	r.args = append([]string{"serve",
		"--listen", r.address, "--metrics-listen", r.metrics, "--data-dir", data, "--pprof",
		"--tls-cert", cert.Cert, "--tls-key", cert.Key,
		"--log-level", "debug", "--shutdown-spread", "0s",
		"--connections-per-ip", "0", "--messages-per-minute", "0", "--control-frames-per-minute", "0",
	}, flags...)
	t.Cleanup(r.kill)
	return r
}

// logFile is where the relay logs, over all its starts.
func (r *relay) logFile() string { return filepath.Join(r.files, r.name+".log") }

// start starts the process and does not wait until it serves.
func (r *relay) start() {
	r.t.Helper()
	log, err := os.OpenFile(r.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatalf("failed to open the log: %v", err)
	}
	defer log.Close()
	p := r.command(r.args...)
	p.Stdout, p.Stderr = log, log
	dieWithUs(p)
	if err := p.Start(); err != nil {
		r.t.Fatalf("failed to start the relay: %v", err)
	}
	ended := make(chan struct{})
	r.process, r.ended = p, ended
	go func() {
		err := p.Wait()
		r.status = err
		close(ended)
	}()
	if r.started != nil {
		if err := r.started(p); err != nil {
			r.kill()
			r.t.Skipf("NOT RUN: %v\n%s", err, r.lastLog())
		}
	}
}

// ready asks for /readyz and returns the status, 0 if there is no answer.
func (r *relay) ready() int {
	transport := &http.Transport{TLSClientConfig: r.tls.Clone(), DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	resp, err := client.Get("https://" + r.address + "/readyz")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// serve starts the relay and waits until it is ready.
func (r *relay) serve() {
	r.t.Helper()
	r.start()
	r.awaitReady()
}

func (r *relay) awaitReady() {
	r.t.Helper()
	for deadline := time.Now().Add(patience); r.ready() != http.StatusOK; time.Sleep(5 * time.Millisecond) {
		select {
		case <-r.ended:
			r.t.Fatalf("the relay has ended: %v\n%s", r.status, r.lastLog())
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the relay does not get ready\n%s", r.lastLog())
		}
	}
}

// kill ends the process with SIGKILL, if it runs.
func (r *relay) kill() {
	if r.process == nil {
		return
	}
	_ = r.process.Process.Kill()
	<-r.ended
	r.process = nil
}

// stop ends the process in good order, looks at its last metrics before, and at
// its file after.
func (r *relay) stop() {
	r.t.Helper()
	if m := r.scrape(); m.sum("blindpost_handler_panics_total") > 0 {
		r.t.Errorf("handlers have panicked\n%s", r.lastLog())
	}
	_ = r.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.ended:
		if r.status != nil {
			r.t.Errorf("the relay did not end well: %v\n%s", r.status, r.lastLog())
		}
	case <-time.After(patience):
		r.t.Errorf("the relay does not end\n%s", r.lastLog())
	}
	r.kill()
	r.wantSoundFile()
}

// wantSoundFile lets the database look over its own file.
func (r *relay) wantSoundFile() {
	r.t.Helper()
	db, err := bbolt.Open(filepath.Join(r.data, "blindpost.db"), 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
	if err != nil {
		r.t.Errorf("failed to open the database: %v", err)
		return
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		var errs []error
		for err := range tx.Check() {
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	if err != nil {
		r.t.Errorf("the database is corrupt: %v", err)
	}
}

// lastLog is the end of the log, for a failure message.
func (r *relay) lastLog() string {
	b, err := os.ReadFile(r.logFile())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-3000):])
}

// logged counts the lines of the log that contain text.
func (r *relay) logged(text string) int {
	r.t.Helper()
	b, err := os.ReadFile(r.logFile())
	if err != nil {
		r.t.Fatalf("failed to read the log: %v", err)
	}
	n := 0
	for line := range bytes.Lines(b) {
		if bytes.Contains(line, []byte(text)) {
			n++
		}
	}
	return n
}

// wantNoErrors fails the test if the relay has logged an error.
func (r *relay) wantNoErrors() {
	r.t.Helper()
	if n := r.logged(`"level":"ERROR"`); n > 0 {
		r.t.Errorf("the relay has logged %d errors\n%s", n, r.lastLog())
	}
}

// metrics are series by name with labels, as they are written.
type metrics map[string]float64

// scrape reads the metrics, and keeps them to be searched.
func (r *relay) scrape() metrics {
	r.t.Helper()
	b := r.get("/metrics")
	m := r.parse(b)
	r.scrapes++
	file := filepath.Join(r.files, fmt.Sprintf("%s-%d.metrics", r.name, r.scrapes))
	if err := os.WriteFile(file, b, 0o600); err != nil {
		r.t.Fatalf("failed to keep the metrics: %v", err)
	}
	return m
}

// peek reads the metrics, for those who look again and again.
func (r *relay) peek() metrics {
	r.t.Helper()
	return r.parse(r.get("/metrics"))
}

func (r *relay) parse(b []byte) metrics {
	r.t.Helper()
	m := metrics{}
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, "#") {
			continue
		}
		// A label may contain a space; a value does not.
		if i := strings.LastIndexByte(line, ' '); i > 0 {
			name, value = line[:i], strings.TrimSpace(line[i+1:])
		}
		v, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			r.t.Fatalf("the metrics have a line %q", line)
		}
		m[name] = v
	}
	return m
}

// get asks for a page on the address of the metrics.
func (r *relay) get(path string) []byte {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.metrics+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatalf("failed to get %s: %v", path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("failed to get %s: status %d, %v", path, resp.StatusCode, err)
	}
	return b
}

// one returns a series, which has to be there.
func (m metrics) one(t *testing.T, name string) float64 {
	t.Helper()
	v, ok := m[name]
	if !ok {
		t.Fatalf("there is no series %s", name)
	}
	return v
}

// sum adds all series of a name.
func (m metrics) sum(name string) (sum float64) {
	for series, v := range m {
		if series == name || strings.HasPrefix(series, name+"{") {
			sum += v
		}
	}
	return sum
}
