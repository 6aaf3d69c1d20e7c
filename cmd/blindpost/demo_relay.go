package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"blindpost/shared/push"
	"blindpost/shared/standalone"
)

// demoRelay is a whole relay on a free port of this computer, with TLS, whose
// log and pushes are kept to be looked at.
type demoRelay struct {
	node   *standalone.Node
	dir    string
	addr   string
	cert   []byte         // DER
	roots  *x509.CertPool // trusts it
	tls    *tls.Config
	log    *demoLog
	pushes *demoPushes
	minter string // signs the tokens of Aelos peers
	served <-chan error
}

// demoLogFile is the log, in the relay's folder.
const demoLogFile = "relay.log"

// startDemoRelay starts one with its files in dir. show, if it is set, gets each
// line of the log.
func startDemoRelay(dir string, settings demoSettings, show func(line string)) (*demoRelay, error) {
	certPEM, keyPEM, err := makeSelfSigned([]string{"127.0.0.1", "localhost"}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("failed to make a certificate: %w", err)
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("failed to make a certificate: %w", err)
	}
	r := &demoRelay{
		dir:    dir,
		cert:   cert.Certificate[0],
		roots:  x509.NewCertPool(),
		tls:    &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		log:    &demoLog{show: show},
		pushes: &demoPushes{changed: make(chan struct{})},
		minter: rand.Text() + rand.Text(),
	}
	r.roots.AppendCertsFromPEM(certPEM)
	if err := r.open("127.0.0.1:0", settings.limits); err != nil {
		return nil, err
	}
	if settings.tap != nil {
		settings.tap(r.log)
	}
	return r, nil
}

// open starts the relay on an address.
func (r *demoRelay) open(address string, limits standalone.Limits) error {
	node, err := standalone.Open(standalone.Config{
		DataDir:  r.dir,
		Limits:   limits,
		PushText: push.Text{Title: "Skald", Body: "Action required"},
		Pusher:   r.pushes,
		Aelos:    standalone.Aelos{Secrets: func(context.Context) ([]string, error) { return []string{r.minter}, nil }},
		TLS:      r.tls,
		Log:      slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(fmt.Errorf("failed to listen: %w", err), node.Shutdown(context.Background(), 0))
	}
	served := make(chan error, 1)
	go func() { served <- node.Serve(context.Background(), l) }()
	r.node, r.addr, r.served = node, l.Addr().String(), served
	return nil
}

// url is where peers connect, with the path of their protocol.
func (r *demoRelay) url(path string) string { return "wss://" + r.addr + path }

// trusted is for connections to this relay and no other.
func (r *demoRelay) trusted() *tls.Config {
	return &tls.Config{RootCAs: r.roots, MinVersion: tls.VersionTLS12}
}

// healthy asks the relay over HTTPS whether it is well.
func (r *demoRelay) healthy(ctx context.Context) error {
	return wantOK(ctx, "https://"+r.addr+"/healthz", r.trusted())
}

// stop ends the relay and leaves its log beside its database.
func (r *demoRelay) stop(ctx context.Context) error {
	err := r.node.Shutdown(ctx, 0)
	return errors.Join(err, <-r.served, os.WriteFile(filepath.Join(r.dir, demoLogFile), r.log.bytes(), 0o600))
}

// reopen stops the relay and starts it again, with the same files and address.
func (r *demoRelay) reopen(ctx context.Context, limits standalone.Limits) error {
	if err := errors.Join(r.node.Shutdown(ctx, 0), <-r.served); err != nil {
		return err
	}
	return r.open(r.addr, limits)
}

// files returns all that the relay has on disk.
func (r *demoRelay) files() (contents [][]byte, err error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("failed to look at the relay's folder: %w", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			return nil, fmt.Errorf("failed to look at the relay's folder: %s is no file", e.Name())
		}
		content, err := os.ReadFile(filepath.Join(r.dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("failed to look at the relay's folder: %w", err)
		}
		contents = append(contents, content)
	}
	return contents, nil
}

// demoLog keeps what a relay logs, and shows it if show is set.
type demoLog struct {
	show func(line string)

	mu      sync.Mutex
	content bytes.Buffer
}

func (l *demoLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.content.Write(p)
	if l.show != nil {
		l.show(strings.TrimRight(string(p), "\n"))
	}
	return len(p), nil
}

func (l *demoLog) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.content.Bytes())
}

// demoPushes stands in for Apple and Google.
type demoPushes struct {
	mu      sync.Mutex
	sent    []push.Notification
	changed chan struct{} // closed and replaced with each one
}

var _ push.Sender = (*demoPushes)(nil)

// Send implements push.Sender.
func (p *demoPushes) Send(_ context.Context, n push.Notification) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, n)
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// wait waits for a number of pushes to a token.
func (p *demoPushes) wait(ctx context.Context, token string, n int) error {
	for {
		got, changed := p.to(token)
		if len(got) >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d came", len(got), n)
		}
	}
}

// to returns the payloads of the pushes to a token, and what is closed with the next one.
func (p *demoPushes) to(token string) (payloads [][]byte, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sent {
		if s.Token == token {
			payloads = append(payloads, s.Payload)
		}
	}
	return payloads, p.changed
}

// payloads returns what went to the providers.
func (p *demoPushes) payloads() (all [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sent {
		all = append(all, s.Payload)
	}
	return all
}
