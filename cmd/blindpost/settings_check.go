package main

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/dialect/skald"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/remote/invoke"
	"blindpost/shared/settings"
)

// complaints collects what is wrong with the settings.
type complaints struct {
	settings.Values
	errs []error
}

// when adds a complaint about a setting, if it is wrong.
func (c *complaints) when(wrong bool, n settings.Named, format string, args ...any) {
	if wrong {
		c.errs = append(c.errs, c.Wrong(n, format, args...))
	}
}

// checkSettings finds settings that contradict each other. What each must be by itself is declared.
func checkSettings(v settings.Values) error {
	c := &complaints{Values: v, errs: []error{skald.CheckSettings(v), agentknock.CheckSettings(v), aelos.CheckSettings(v)}}
	c.checkGeneral()
	c.checkFrames()
	c.checkGroup(settings.AelosSecretFile)
	c.checkGroup(settings.Lambda)
	if settings.Lambda.Of(v) != "" {
		c.checkLambda()
	}
	return errors.Join(c.errs...)
}

// checkGroup finds settings in the group of n that were set although n, which turns them on, was not.
func (c *complaints) checkGroup(n settings.Named) {
	for _, s := range settings.All(settings.Binary) {
		c.when(s.Group == n.It().Group && !c.IsSet(n) && c.IsSet(s), s, "it means nothing without %s", n)
	}
}

func (c *complaints) checkGeneral() {
	listen, metrics := settings.Listen.Of(c.Values), settings.MetricsListen.Of(c.Values)
	c.when(metrics == listen && !strings.HasSuffix(listen, ":0"), settings.MetricsListen, "it is the same address as %s", settings.Listen)
	c.when(settings.Pprof.Of(c.Values) && metrics == "", settings.Pprof, "profiles are served on %s, which is off", settings.MetricsListen)

	cert, key, acme := settings.TLSCert.Of(c.Values) != "", settings.TLSKey.Of(c.Values) != "", len(settings.ACMEDomains.Of(c.Values)) > 0
	c.when(cert && !key, settings.TLSCert, "it needs %s", settings.TLSKey)
	c.when(key && !cert, settings.TLSKey, "it needs %s", settings.TLSCert)
	c.when(acme && (cert || key), settings.ACMEDomains, "it excludes %s and %s", settings.TLSCert, settings.TLSKey)
	c.when(!acme && settings.ACMEEmail.Of(c.Values) != "", settings.ACMEEmail, "it needs %s", settings.ACMEDomains)
}

func (c *complaints) checkFrames() {
	buffer, live := settings.SendBuffer.Of(c.Values), settings.MaxLiveFrame.Of(c.Values)
	c.when(buffer < live, settings.SendBuffer, "it is smaller than %s, so that such a frame could not be sent", settings.MaxLiveFrame)
	c.when(settings.AelosSecretFile.Of(c.Values) != "" && buffer < 2*settings.AelosMaxFrame.Of(c.Values),
		settings.SendBuffer, "it does not hold two frames of %s", settings.AelosMaxFrame)
	c.when(settings.PingInterval.Of(c.Values) >= settings.IdleTimeout.Of(c.Values),
		settings.PingInterval, "it is not shorter than %s, so that idle connections would be closed", settings.IdleTimeout)
	c.when(settings.Lambda.Of(c.Values) != "" && live > invoke.MaxFrame, settings.MaxLiveFrame, "a call of a function carries at most %d bytes", int64(invoke.MaxFrame))
}

func (c *complaints) checkLambda() {
	listen, cert := settings.CallbackListen.Of(c.Values), settings.CallbackTLSCert.Of(c.Values) != ""
	c.when(!cert && !isNearby(listen) && len(settings.BehindProxy.Of(c.Values)) == 0, settings.CallbackListen,
		"without %s it must be a loopback or private address, or there must be a proxy (%s): the secret would go over the network in the clear",
		settings.CallbackTLSCert, settings.BehindProxy)
	c.when(cert != (settings.CallbackTLSKey.Of(c.Values) != ""), settings.CallbackTLSCert, "it needs %s, and the other way round", settings.CallbackTLSKey)
	c.when(settings.CallbackSecretFile.Of(c.Values) != "" && settings.CallbackSecretARN.Of(c.Values) != "",
		settings.CallbackSecretFile, "it excludes %s", settings.CallbackSecretARN)
	err := apigw.CheckFront(callbackURL(c.Values))
	if settings.CallbackURL.Of(c.Values) != "" {
		c.when(err != nil, settings.CallbackURL, "%w", err)
	} else {
		c.when(err != nil || strings.HasSuffix(listen, ":0"), settings.CallbackURL, "it is needed, as %s is no address that the functions could call", settings.CallbackListen)
	}
}

// isNearby reports whether only this machine or its private network reaches an address.
func isNearby(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost"
	}
	return a.IsLoopback() || a.IsPrivate()
}

// callbackURL is the address that the functions call.
func callbackURL(v settings.Values) string {
	if u := settings.CallbackURL.Of(v); u != "" {
		return u
	}
	u := url.URL{Scheme: "http", Host: settings.CallbackListen.Of(v)}
	if settings.CallbackTLSCert.Of(v) != "" {
		u.Scheme = "https"
	}
	return u.String()
}

// callbackSecretFile is the file with the secret; ours is one that we make.
func callbackSecretFile(v settings.Values) (name string, ours bool) {
	if name := settings.CallbackSecretFile.Of(v); name != "" {
		return name, false
	}
	return filepath.Join(settings.DataDir.Of(v), "callback-secret"), true
}
