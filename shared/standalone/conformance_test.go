package standalone_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/proof/skald/conformance"
	"blindpost/shared/push"
	"blindpost/shared/standalone"
)

// The conformance suite of the Skald dialect against a relay in this process.
func TestConformance(t *testing.T) {
	conformance.Run(t, openInProcess)
}

// And against the binary, which can be killed.
func TestConformanceBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary")
	}
	binary := filepath.Join(t.TempDir(), "blindpost")
	build := exec.Command("go", "build", "-o", binary, "blindpost/cmd/blindpost")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("failed to build: %v\n%s", err, out)
	}
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target {
		return openBinary(t, binary, o)
	})
}

// ours is what our own front can do.
func ours(address string, roots *x509.CertPool) conformance.Target {
	target := conformance.Target{
		URL:           "wss://" + address + skald.Path,
		TLS:           &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		KnowsDelivery: true,
		Pings:         true,
		CloseCodes:    true,
		// Only Linux has all of 127.0.0.0/8 by itself.
		OwnAddresses: runtime.GOOS == "linux",
	}
	if !target.OwnAddresses {
		target.Lacks = []string{"Section10_ConnectionsPerIPAreEachTheirOwn"}
	}
	return target
}

func openInProcess(t *testing.T, o conformance.Settings) conformance.Target {
	pair, _, roots := certificate(t)
	pushes, log := &pushBook{}, &logBook{}
	cfg := standalone.Config{
		DataDir:   t.TempDir(),
		Limits:    limits(o),
		Pusher:    pushes,
		PushText:  push.Text{Title: "Skald", Body: "Action required"},
		TLS:       &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		PingEvery: o.PingInterval,
		IdleAfter: o.IdleTimeout,
		Log:       slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	address := freeAddress(t)
	stop := serve(t, cfg, address)
	t.Cleanup(func() { stop() })

	target := ours(address, roots)
	target.Lacks = append(target.Lacks,
		"Property1_KillWhileTheRecipientIsAway", "Property1_KillWhileTheRecipientReads", "Property1_KillDuringPairing")
	target.Pushes = pushes.all
	target.Log = log.bytes
	target.Restart = func(t *testing.T) {
		t.Helper()
		stop()
		stop = serve(t, cfg, address)
	}
	return target
}

// serve starts a relay and returns what stops it.
func serve(t *testing.T, cfg standalone.Config, address string) (stop func()) {
	t.Helper()
	node, err := standalone.Open(cfg)
	if err != nil {
		t.Fatalf("failed to open: %v", err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("failed to listen: %v", err)
	}
	served := make(chan error, 1)
	go func() { served <- node.Serve(context.Background(), listener) }()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := node.Shutdown(ctx, 0); err != nil {
			t.Errorf("failed to shut down: %v", err)
		}
		<-served
	}
}

// limits are those of the specification, where o does not say otherwise. The
// budget of control frames is our own and follows that of messages.
func limits(o conformance.Settings) standalone.Limits {
	l := standalone.DefaultLimits()
	set(&l.Relay.MessagesPerMinute, int64(o.MessagesPerMinute))
	set(&l.Relay.ConnectionsPerIP, int64(o.ConnectionsPerIP))
	set(&l.Relay.MailboxCap, int64(o.MailboxCap))
	set(&l.Relay.MessageTTL, o.QueueTTL)
	set(&l.Skald.MaxFrame, int64(o.MaxFrame))
	set(&l.Skald.MaxLiveFrame, int64(o.MaxLiveFrame))
	set(&l.Skald.ChallengeTimeout, o.ChallengeTimeout)
	set(&l.Skald.NamespaceTTL, o.NamespaceTTL)
	l.Relay.ControlPerMinute = max(l.Relay.ControlPerMinute, l.Relay.MessagesPerMinute)
	return l
}

func set[T comparable](limit *T, to T) {
	var zero T
	if to != zero {
		*limit = to
	}
}

// openBinary runs `blindpost serve`.
func openBinary(t *testing.T, binary string, o conformance.Settings) conformance.Target {
	_, files, roots := certificate(t)
	l := limits(o)
	address := freeAddress(t)
	log := &logBook{}
	args := []string{"serve",
		"--listen", address,
		"--data-dir", t.TempDir(),
		"--metrics-listen", "off",
		"--shutdown-spread", "0s",
		"--log-level", "debug",
		"--tls-cert", files.cert,
		"--tls-key", files.key,
		"--connections-per-ip", fmt.Sprint(l.Relay.ConnectionsPerIP),
		"--messages-per-minute", fmt.Sprint(l.Relay.MessagesPerMinute),
		"--control-frames-per-minute", fmt.Sprint(l.Relay.ControlPerMinute),
		"--mailbox-cap", fmt.Sprint(l.Relay.MailboxCap),
		"--message-ttl", l.Relay.MessageTTL.String(),
		"--max-frame", fmt.Sprint(l.Skald.MaxFrame),
		"--max-live-frame", fmt.Sprint(l.Skald.MaxLiveFrame),
		"--challenge-timeout", l.Skald.ChallengeTimeout.String(),
		"--namespace-ttl", l.Skald.NamespaceTTL.String(),
	}
	if o.PingInterval != 0 {
		args = append(args, "--ping-interval", o.PingInterval.String())
	}
	if o.IdleTimeout != 0 {
		args = append(args, "--idle-timeout", o.IdleTimeout.String())
	}
	var relay *exec.Cmd
	start := func(t *testing.T) {
		t.Helper()
		relay = exec.Command(binary, args...)
		relay.Stdout, relay.Stderr = log, log
		if err := relay.Start(); err != nil {
			t.Fatalf("failed to start: %v", err)
		}
		waitForListener(t, address, log)
	}
	end := func(t *testing.T, sig os.Signal) {
		t.Helper()
		_ = relay.Process.Signal(sig)
		err := relay.Wait()
		if sig == os.Interrupt && err != nil {
			t.Errorf("the relay did not end well: %v\n%s", err, log.bytes())
		}
	}
	start(t)
	t.Cleanup(func() { end(t, os.Interrupt) })

	target := ours(address, roots)
	target.Lacks = append(target.Lacks, // nobody sees what it pushes
		"Section5_RevokedTokenIsForgotten", "Section6_3_PushForWhoIsAway", "Section6_3_NoPushWithoutReason",
		"Section6_3_PushOfALongMessageOnlyWakes", "Section4_3_DeviceTokenIsUpdated")
	target.Log = log.bytes
	target.Restart = func(t *testing.T) { t.Helper(); end(t, os.Interrupt); start(t) }
	target.Kill = func(t *testing.T) { t.Helper(); end(t, os.Kill); start(t) }
	return target
}

func waitForListener(t *testing.T, address string, log *logBook) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the relay does not listen: %v\n%s", err, log.bytes())
		}
	}
}

// freeAddress returns an address to listen on again and again. It is none that
// the system gives to connections of its own choice, so nobody takes it while
// the relay is restarted.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20_000+mathrand.IntN(10_000)))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

type certFiles struct{ cert, key string }

// certificate makes a certificate for 127.0.0.1, in memory and in files, and a
// pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, certFiles, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true,
		IsCA:                  true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := certFiles{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for name, content := range map[string][]byte{files.cert: certPEM, files.key: keyPEM} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return pair, files, roots
}

// logBook keeps what the relay logs.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBook) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

// pushBook is a provider that keeps what it is given.
type pushBook struct {
	mu     sync.Mutex
	pushes []conformance.Push
}

var _ push.Sender = (*pushBook)(nil)

func (b *pushBook) Send(_ context.Context, n push.Notification) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pushes = append(b.pushes, conformance.Push{
		Token: n.Token, Android: n.Platform == push.Android, Payload: bytes.Clone(n.Payload),
	})
	return nil
}

func (b *pushBook) all() []conformance.Push {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]conformance.Push(nil), b.pushes...)
}
