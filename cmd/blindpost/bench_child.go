package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"blindpost/shared/proof/bench"
	"blindpost/shared/settings"
)

// benchExecutable is how to run this binary again. before goes before the
// arguments, environ is added to the environment; both are for tests, in which
// this binary is the test program.
type benchExecutable struct {
	path    string
	before  []string
	environ []string
}

// benchLauncher starts relays in processes of their own.
type benchLauncher struct {
	exe     benchExecutable
	dir     string
	profile string
	environ []string
}

const (
	// benchReady is how long a relay may take to start, benchStop to end.
	benchReady = 20 * time.Second
	benchStop  = 15 * time.Second
	// benchTries is how often a start is tried: another process may take the free port
	// before the relay does.
	benchTries = 3
)

// benchChild is a relay in another process.
type benchChild struct {
	cmd     *exec.Cmd
	dir     string
	target  bench.Target
	metrics string // address
	profile string
	said    *benchTail
	exited  chan struct{} // closed when the process has ended
	err     error         // why, set before
}

var _ bench.Relay = (*benchChild)(nil)

// start is a bench.Launcher. The relay dies with ctx and, where the system can do
// that, with this process.
func (l benchLauncher) start(ctx context.Context, plain bool) (bench.Relay, error) {
	var err error
	for range benchTries {
		var c *benchChild
		if c, err = l.startOnce(ctx, plain); err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("failed to start a relay: %w", err)
}

func (l benchLauncher) startOnce(ctx context.Context, plain bool) (*benchChild, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(l.dir, "relay-")
	if err != nil {
		return nil, fmt.Errorf("failed to make a data folder: %w", err)
	}
	c := &benchChild{
		dir: dir, metrics: ports[1], profile: l.profile, said: &benchTail{}, exited: make(chan struct{}),
		target: bench.Target{Addr: ports[0], Host: "localhost"},
	}
	if err := c.shareSecret(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	c.cmd = exec.CommandContext(ctx, l.exe.path, slices.Concat(l.exe.before, c.args(plain))...)
	c.cmd.Env = append(withoutSettings(l.environ), l.exe.environ...)
	c.cmd.Stdout, c.cmd.Stderr = c.said, c.said
	c.cmd.WaitDelay = benchStop
	dieWithParent(c.cmd)
	if err := c.run(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	if err := c.ready(ctx, plain); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// args start a relay with an empty database, no limits and, unless plain, a self-signed
// certificate.
func (c *benchChild) args(plain bool) []string {
	args := []string{
		"serve", "--listen", c.target.Addr, "--metrics-listen", c.metrics, "--data-dir", c.dir,
		"--log-level", "warn", "--shutdown-spread", "0s",
		"--connections-per-ip", "0", "--messages-per-minute", "0", "--control-frames-per-minute", "0", "--mailbox-cap", "0",
		"--agentknock-client-exchanges-per-minute", "0", "--agentknock-device-exchanges-per-minute", "0",
		"--agentknock-client-open-exchanges", "0", "--agentknock-device-open-exchanges", "0",
		"--agentknock-client-stored-bytes", "0", "--agentknock-device-stored-bytes", "0", "--agentknock-frames-per-minute", "0",
		"--aelos-secret-file", c.secretFile(),
		"--aelos-boat-frames-per-minute", "0", "--aelos-viewer-frames-per-minute", "0", "--aelos-commands-per-minute", "0",
		"--aelos-command-bytes-per-minute", "0", "--aelos-handshakes-per-minute", "0",
	}
	if plain {
		args = append(args, "--behind-proxy", "127.0.0.1/32")
	}
	if c.profile != "" {
		args = append(args, "--pprof=true")
	}
	return args
}

// secretFile holds the secret with which the generator signs Aelos tokens.
func (c *benchChild) secretFile() string { return filepath.Join(c.dir, "aelos-secret") }

func (c *benchChild) shareSecret() error {
	secret := rand.Text() + rand.Text()
	if err := os.WriteFile(c.secretFile(), []byte(secret), 0o600); err != nil {
		return fmt.Errorf("failed to write a secret: %w", err)
	}
	c.target.AelosSecret = []byte(secret)
	return nil
}

// run starts the process and has a goroutine wait for it. That goroutine keeps
// its thread: Linux kills the child when the thread that started it ends.
func (c *benchChild) run() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		c.err = c.cmd.Wait()
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("failed to start %s: %w", filepath.Base(c.cmd.Path), err)
	}
	return nil
}

// ready waits until the relay says that it is.
func (c *benchChild) ready(ctx context.Context, plain bool) error {
	ctx, cancel := context.WithTimeout(ctx, benchReady)
	defer cancel()
	for {
		err := c.askReady(ctx, plain)
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return errors.New("the relay ended at once")
		case <-ctx.Done():
			return fmt.Errorf("the relay did not become ready: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (c *benchChild) askReady(ctx context.Context, plain bool) error {
	scheme := "http"
	if !plain {
		var err error
		if c.target.TLS, err = pinCertificate(filepath.Join(c.dir, tlsFolder, selfSignedPublic)); err != nil {
			return err
		}
		scheme = "https"
	}
	return wantOK(ctx, scheme+"://"+c.target.Addr+"/readyz", c.target.TLS)
}

// wantOK asks for a page in a connection of its own. Of the answer, the status counts.
func wantOK(ctx context.Context, url string, c *tls.Config) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: c}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}

// pinCertificate makes a TLS configuration that accepts the certificate in a file and no
// other. That is as strict as checking a signature, and costs the generator less.
func pinCertificate(name string) (*tls.Config, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("the certificate of the relay cannot be read")
	}
	want, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		ServerName:         "localhost",
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // in favour of:
		VerifyConnection: func(s tls.ConnectionState) error {
			if !s.PeerCertificates[0].Equal(want) {
				return errors.New("the relay shows another certificate")
			}
			return nil
		},
		DynamicRecordSizingDisabled: true,
	}, nil
}

// Target implements bench.Relay.
func (c *benchChild) Target() bench.Target { return c.target }

// Usage implements bench.Relay.
func (c *benchChild) Usage() (bench.Usage, bool) { return processUsage(c.cmd.Process.Pid) }

// Stop implements bench.Relay. It is an error if the relay ended by itself or with a
// failure; the error quotes the end of its output.
func (c *benchChild) Stop() error {
	alone, forced := false, false
	select {
	case <-c.exited:
		alone = true
	default:
		if forced = c.cmd.Process.Signal(syscall.SIGTERM) != nil; forced { // Windows has no such signal
			_ = c.cmd.Process.Kill()
		}
		select {
		case <-c.exited:
		case <-time.After(benchStop):
			_ = c.cmd.Process.Kill()
			<-c.exited
		}
	}
	err := os.RemoveAll(c.dir)
	if alone || (c.err != nil && !forced) {
		err = errors.Join(fmt.Errorf("the relay has ended (%v) and said: %q", c.cmd.ProcessState, c.said.String()), err)
	}
	return err
}

// freePorts finds n free loopback addresses.
func freePorts(n int) ([]string, error) {
	var out []string
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("failed to find a free port: %w", err)
		}
		held = append(held, l)
		out = append(out, l.Addr().String())
	}
	return out, nil
}

// withoutSettings is an environment without the variables that set up a relay.
func withoutSettings(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, settings.Prefix) })
}

// benchTail keeps the end of what is written to it.
type benchTail struct {
	mu sync.Mutex
	b  []byte
}

const benchTailBytes = 4 << 10

var _ io.Writer = (*benchTail)(nil)

func (t *benchTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - benchTailBytes; over > 0 {
		t.b = t.b[:copy(t.b, t.b[over:])]
	}
	return len(p), nil
}

func (t *benchTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
