package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

// findings are what earlier checks leave to later ones.
type findings struct {
	// broken says that later checks cannot run.
	broken bool
	roots  *x509.CertPool // nil is the system's
	date   string         // Date header of the relay
	dateAt time.Time      // when it came
	conn   *skaldclient.Conn
	nonce  []byte // of the challenge
}

// certPool is the system's with the certificates in a file; nil for no file.
func certPool(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read a certificate: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("failed to read a certificate: there is none in %s", file)
	}
	return pool, nil
}

// broke is a failure after which the later checks make no sense.
func (d *doctor) broke(advice, format string, args ...any) check {
	d.found.broken = true
	return failed(advice, format, args...)
}

func (d *doctor) checkName(ctx context.Context) check {
	host := d.url.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return passed("%s is an address, there is nothing to look up", host)
	}
	addrs, err := d.look(ctx, host)
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return d.broke("Is the name spelt right? If it is new, its DNS record (A or AAAA) may be missing or not known everywhere yet.",
			"there is no host %s", printable(host))
	case err != nil:
		return d.broke("Is this computer online? Can it look up other names?", "%s cannot be looked up: %s", printable(host), plainError(err))
	}
	return passed("%s is %s", printable(host), strings.Join(addrs, ", "))
}

func (d *doctor) checkTCP(ctx context.Context) check {
	begin := d.now()
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", d.address())
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		advice := "The computer is there, but nothing listens on this port. Does the relay run? Is the port right?"
		if isLoopback(d.url.Hostname()) {
			advice = "Nothing listens on this port. Start the relay: blindpost serve. Is the port right?"
		}
		return d.broke(advice, "%s refuses the connection", d.address())
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return d.broke("Is this computer online? Does it have IPv6, if the relay has only an IPv6 address?", "there is no way to %s: %s", d.address(), plainError(err))
	case isTimeout(err):
		return d.broke("A firewall or router on the way may drop connections to this port, or the computer may be off.",
			"%s does not answer within %v", d.address(), d.timeout)
	case err != nil:
		return d.broke("Does a firewall on this computer stop it?", "no connection to %s: %s", d.address(), plainError(err))
	}
	defer nc.Close()
	return passed("connected to %s in %s", nc.RemoteAddr(), span(d.now().Sub(begin)))
}

func (d *doctor) checkTLS(ctx context.Context) check {
	if d.url.Scheme == "ws" {
		return failed("Use wss://. A relay takes no connection without TLS, as anybody on the way could see who talks to whom.",
			"the URL begins with ws://: no TLS")
	}
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", d.address())
	if err != nil {
		return d.broke("Try again. If it happens often, connections are lost on the way, or the relay is overloaded.", "the second connection failed: %s", plainError(err))
	}
	defer nc.Close()
	// The certificate is checked below (distrust), to say more than that the handshake
	// failed.
	c := tls.Client(nc, &tls.Config{ServerName: d.url.Hostname(), InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	err = c.HandshakeContext(ctx)
	if isTimeout(err) {
		return d.broke("Something takes the connection and says nothing. Is it the port for clients? Does a proxy there wait for a relay that does not run?",
			"no TLS within %v", d.timeout)
	}
	if err != nil {
		return d.broke(tlsAdvice(err, d.url.Hostname()), "no TLS: %s", plainError(err))
	}
	state := c.ConnectionState()
	leaf := state.PeerCertificates[0]
	detail := fmt.Sprintf("%s; certificate for %s, issued by %s, valid until %s", tls.VersionName(state.Version),
		printable(certNames(leaf)), printable(cmp.Or(leaf.Issuer.String(), "an unnamed issuer")), leaf.NotAfter.UTC().Format("2006-01-02"))
	if problem, advice := d.distrust(state.PeerCertificates); problem != "" {
		if d.insecure {
			return passed("%s; %s, accepted because of --insecure", detail, problem)
		}
		// The other checks go on, not trusting it: more may be wrong.
		return failed(advice, "%s; %s", detail, problem)
	}
	if left := leaf.NotAfter.Sub(d.now()); left < certRenewal {
		return failed("The certificate was not renewed in time: look into the log of what renews it. Clients will refuse the relay when it has ended.",
			"%s; it ends in %d days", detail, int(left.Hours()/24))
	}
	return passed("%s; trusted", detail)
}

// certRenewal is when a certificate should have been renewed: those with the
// shortest lives are replaced when some days are left.
const certRenewal = 3 * 24 * time.Hour

// distrust says what is wrong with a certificate, "" if nothing is.
func (d *doctor) distrust(chain []*x509.Certificate) (problem, advice string) {
	leaf := chain[0]
	pool := x509.NewCertPool()
	for _, c := range chain[1:] {
		pool.AddCert(c)
	}
	now := d.now()
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Sprintf("it ended %s ago", days(now.Sub(leaf.NotAfter))),
			"Renew the certificate of the relay, and see that it is renewed by itself from now on."
	case now.Before(leaf.NotBefore):
		return "it is not valid yet", "Is the clock of this computer right? If so, the certificate was issued for the future."
	case leaf.VerifyHostname(d.url.Hostname()) != nil:
		return "it is for another name",
			"Use the name that the certificate is for, or get one for this name. If the relay is behind a proxy, the proxy may show the wrong one."
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: d.found.roots, Intermediates: pool, CurrentTime: now, DNSName: d.url.Hostname()})
	if err == nil {
		return "", ""
	}
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		return plainError(err), "Get another certificate."
	}
	if leaf.CheckSignatureFrom(leaf) == nil || leaf.Issuer.String() == leaf.Subject.String() {
		return "it is signed by itself", "For a relay of your own on this computer that is normal: use --insecure, or --ca with its certificate " +
			"(blindpost-data/" + tlsFolder + "/" + selfSignedPublic + ").\nFor others: get a certificate, for instance with blindpost serve --acme-domain."
	}
	return "its issuer is not trusted on this computer",
		"Does the relay send the whole chain, with the certificates between its own and the root? If the issuer is your own, use --ca."
}

// tlsAdvice tells what a failed handshake may mean.
func tlsAdvice(err error, host string) string {
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &header):
		return "Something else than TLS listens on this port. Is it the port for clients? If a proxy ends TLS, use its port."
	case strings.Contains(err.Error(), "internal error"), strings.Contains(err.Error(), "unrecognized name"):
		return "The relay has no certificate for " + printable(host) + ". Is this the name it was set up for?"
	}
	return "Is this the port for clients? The log of the relay may say more."
}

// client is an HTTP client for this relay only. checkTLS has checked the certificate.
func (d *doctor) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{ServerName: d.url.Hostname(), InsecureSkipVerify: true},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func certNames(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return c.Subject.String()
	}
	if len(names) > 4 {
		names = append(names[:4], "...")
	}
	return strings.Join(names, ", ")
}

// plainError is the innermost message of an error, for people.
func plainError(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return printable(err.Error())
		}
		err = inner
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &t) && t.Timeout())
}

func days(d time.Duration) string { return count(int(d.Hours()/24), "day") }

// span is a short time, for people.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
