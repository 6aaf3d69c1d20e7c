package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"blindpost/shared/table"
)

// Bounds of the frame sizes in bytes. Below the first an Auth with a long push
// token might not fit; above the second a frame would not fit into a table item
// together with what the relay notes about it.
const (
	minFrame    = 4 << 10
	maxFrame    = table.MaxItemSize - 8<<10
	maxAnyFrame = 64 << 20
)

// maxTTL keeps times far from where they overflow.
const maxTTL = 100 * 365 * 24 * time.Hour

// check finds settings that make no sense, alone or together. It returns all
// that is wrong, each error naming its setting.
func (s *Settings) check() error {
	return errors.Join(s.checkGeneral(), s.checkTLS(), s.checkLimits(), s.checkAgentknock(), s.checkAelos(), s.checkLambda())
}

// complaint says what is wrong with a setting.
func complaint(name, format string, args ...any) error {
	return fmt.Errorf("setting %s: "+format, append([]any{name}, args...)...)
}

func (s *Settings) checkGeneral() error {
	var errs []error
	if err := checkAddress(s.Listen); err != nil {
		errs = append(errs, complaint("listen", "%w", err))
	}
	if s.MetricsListen != "" {
		if err := checkAddress(s.MetricsListen); err != nil {
			errs = append(errs, complaint("metrics-listen", "%w", err))
		} else if s.MetricsListen == s.Listen && !strings.HasSuffix(s.Listen, ":0") {
			errs = append(errs, complaint("metrics-listen", "it is the same address as listen"))
		}
	}
	if s.Pprof && s.MetricsListen == "" {
		errs = append(errs, complaint("pprof", "it needs metrics-listen"))
	}
	if strings.TrimSpace(s.DataDir) == "" {
		errs = append(errs, complaint("data-dir", "it must name a folder"))
	}
	if s.Log.Format != "text" && s.Log.Format != "json" {
		errs = append(errs, complaint("log-format", "%q is neither text nor json", s.Log.Format))
	}
	if err := s.Push.Validate(); err != nil {
		errs = append(errs, complaint("push-title, push-body", "%w", err))
	}
	return errors.Join(append(errs, inRange("shutdown-spread", s.ShutdownSpread, 0, time.Hour))...)
}

func checkAddress(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is no address such as :8443 or 127.0.0.1:8443", s)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no port from 0 to 65535", s)
	}
	return nil
}

func (s *Settings) checkTLS() error {
	var errs []error
	t := s.TLS
	switch {
	case t.Cert != "" && t.Key == "":
		errs = append(errs, complaint("tls-cert", "it needs tls-key"))
	case t.Cert == "" && t.Key != "":
		errs = append(errs, complaint("tls-key", "it needs tls-cert"))
	}
	if len(t.ACMEDomains) > 0 && (t.Cert != "" || t.Key != "") {
		errs = append(errs, complaint("acme-domain", "it excludes tls-cert and tls-key"))
	}
	if len(t.ACMEDomains) == 0 && t.ACMEEmail != "" {
		errs = append(errs, complaint("acme-email", "it needs acme-domain"))
	}
	for _, d := range t.ACMEDomains {
		if err := checkDomain(d); err != nil {
			errs = append(errs, complaint("acme-domain", "%w", err))
		}
	}
	return errors.Join(errs...)
}

// checkDomain checks for a DNS name that a certificate can be had for.
func checkDomain(d string) error {
	if _, err := netip.ParseAddr(d); err == nil {
		return fmt.Errorf("%q is an address, not a domain", d)
	}
	if strings.HasPrefix(d, "*.") {
		return fmt.Errorf("%q: there are no certificates for wildcards this way", d)
	}
	labels := strings.Split(d, ".")
	if len(labels) < 2 || len(d) > 253 {
		return fmt.Errorf("%q is no domain such as relay.example.org", d)
	}
	for _, l := range labels {
		if !isLabel(l) {
			return fmt.Errorf("%q is no domain such as relay.example.org", d)
		}
	}
	return nil
}

// isLabel reports whether l can stand between two dots of a host name.
func isLabel(l string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	return l != "" && len(l) <= 63 && l[0] != '-' && l[len(l)-1] != '-' &&
		strings.Trim(strings.ToLower(l), letters) == ""
}

func (s *Settings) checkLimits() error {
	l, t := s.Limits, s.Transport
	errs := []error{
		inRange("max-frame", sizeValue(l.MaxFrame), minFrame, maxFrame),
		inRange("max-live-frame", sizeValue(l.MaxLiveFrame), minFrame, maxAnyFrame),
		positive("challenge-timeout", l.ChallengeTimeout),
		positive("message-ttl", l.MessageTTL),
		inRange("namespace-ttl", l.NamespaceTTL, 0, maxTTL),
		positive("pairing-ttl", l.PairingTTL),
		positive("pairing-ttl-max", l.PairingTTLMax),
		positive("idle-timeout", t.IdleTimeout),
		positive("ping-interval", t.PingInterval),
		positive("write-timeout", t.WriteTimeout),
		inRange("send-buffer", sizeValue(t.SendBuffer), minFrame, 1<<30),
		inRange("max-connections", t.MaxConnections, 0, 1<<30),
	}
	if l.PairingTTL%time.Second != 0 || l.PairingTTLMax%time.Second != 0 {
		errs = append(errs, complaint("pairing-ttl, pairing-ttl-max", "they must be whole seconds"))
	}
	if l.PairingTTL > l.PairingTTLMax {
		errs = append(errs, complaint("pairing-ttl", "it is longer than pairing-ttl-max"))
	}
	if l.MaxLiveFrame < l.MaxFrame {
		errs = append(errs, complaint("max-live-frame", "it is smaller than max-frame"))
	}
	if t.SendBuffer < l.MaxLiveFrame {
		errs = append(errs, complaint("send-buffer", "it is smaller than max-live-frame, so that such a frame could not be sent"))
	}
	if t.PingInterval >= t.IdleTimeout {
		errs = append(errs, complaint("ping-interval", "it is not shorter than idle-timeout, so that idle connections would be closed"))
	}
	return errors.Join(errs...)
}

func positive(name string, d time.Duration) error {
	return inRange(name, d, 1, maxTTL)
}

func inRange[T ~int64](name string, v, least, most T) error {
	show := func(v T) string {
		switch v := any(v).(type) {
		case time.Duration:
			return (*durationValue)(&v).String()
		case sizeValue:
			return v.String()
		}
		return strconv.FormatInt(int64(v), 10)
	}
	switch {
	case v < least && least == 1:
		return complaint(name, "it must be more than 0")
	case v < least:
		return complaint(name, "it must be at least %s", show(least))
	case v > most:
		return complaint(name, "it must be at most %s", show(most))
	}
	return nil
}
