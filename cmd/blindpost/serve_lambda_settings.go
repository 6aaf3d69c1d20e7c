package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/remote/invoke"
)

// LambdaSettings make `blindpost serve` the WebSocket front of the AWS functions,
// instead of a relay of its own.
type LambdaSettings struct {
	URL       string // "": a relay of its own
	Region    string
	Functions invoke.Functions
	Ingress   string // URL of the queue, "" to call the function
	Timeout   time.Duration
	PathParam string

	CallbackListen     string
	CallbackURL        string // "" for the address of CallbackListen
	CallbackCert       string
	CallbackKey        string
	CallbackSecretFile string // "" for one in the data folder
	CallbackSecretARN  string
}

// defaultLambda has the names that the functions have in the stack, by which `sam local
// start-lambda` knows them as well.
func defaultLambda() LambdaSettings {
	return LambdaSettings{
		Functions:      invoke.Functions{Connect: "Connect", Message: "Message", Disconnect: "Disconnect"},
		Timeout:        29 * time.Second,
		PathParam:      "p",
		CallbackListen: "127.0.0.1:8444",
	}
}

func (s *Settings) lambdaFlags(f *settingsFlags) {
	l := &s.Lambda
	f.group("Front of the AWS functions (instead of a relay of its own: the limits are then those of the functions, but for max-live-frame and those of the transport)")
	f.add((*stringValue)(&l.URL), "lambda", "`address` of the Lambda API: https://lambda.REGION.amazonaws.com, or of sam local start-lambda or another stand-in, to which requests go unsigned")
	f.add((*stringValue)(&l.Region), "lambda-region", "`region`; without it, that of the address")
	f.add((*stringValue)(&l.Functions.Connect), "lambda-connect", "`name` or ARN of the function connect; those of the stack are among its outputs")
	f.add((*stringValue)(&l.Functions.Message), "lambda-message", "`name` or ARN of the function message")
	f.add((*stringValue)(&l.Functions.Disconnect), "lambda-disconnect", "`name` or ARN of the function disconnect")
	f.add((*stringValue)(&l.Ingress), "lambda-ingress", "`URL` of the ingress queue, to put frames there instead of calling the function message")
	f.add((*durationValue)(&l.Timeout), "lambda-timeout", "`time` that a call of a function may take, with its tries")
	f.add((*stringValue)(&l.PathParam), "lambda-path-parameter", "`name` of the query parameter in which the functions look for the path")
	f.add((*stringValue)(&l.CallbackListen), "callback-listen", "`address` for the calls of the functions about connections")
	f.add((*stringValue)(&l.CallbackURL), "callback-url", "`address` at which the functions reach this process, one of their BLINDPOST_FRONTS; without it, that of callback-listen")
	f.add((*stringValue)(&l.CallbackCert), "callback-tls-cert", "PEM `file` with the certificate chain for those calls; without it they are plain HTTP")
	f.add((*stringValue)(&l.CallbackKey), "callback-tls-key", "PEM `file` with its private key")
	f.add((*stringValue)(&l.CallbackSecretFile), "callback-secret-file", "`file` with the secret that the functions have to show; without it, callback-secret in data-dir, which is made")
	f.add((*stringValue)(&l.CallbackSecretARN), "callback-secret-arn", "`ARN` of that secret in Secrets Manager, instead of a file")
}

func (s *Settings) checkLambda() error {
	l := s.Lambda
	if l.URL == "" {
		return s.checkNoLambda()
	}
	var errs []error
	if err := invoke.CheckAddress(l.URL); err != nil {
		errs = append(errs, complaint("lambda", "%w", err))
	}
	for name, v := range map[string]string{
		"lambda-connect": l.Functions.Connect, "lambda-message": l.Functions.Message, "lambda-disconnect": l.Functions.Disconnect,
		"lambda-path-parameter": l.PathParam,
	} {
		if strings.TrimSpace(v) == "" {
			errs = append(errs, complaint(name, "it must not be empty"))
		}
	}
	if l.Ingress != "" {
		if err := invoke.CheckAddress(l.Ingress); err != nil || !strings.HasSuffix(l.Ingress, ".fifo") {
			errs = append(errs, complaint("lambda-ingress", "it is not the URL of a FIFO queue"))
		}
	}
	errs = append(errs, positive("lambda-timeout", l.Timeout), s.checkCallback())
	if largest := int64(invoke.MaxFrame); s.Limits.MaxLiveFrame > largest {
		errs = append(errs, complaint("max-live-frame", "a call of a function carries at most %d bytes", largest))
	}
	return errors.Join(errs...)
}

// checkNoLambda finds settings that mean nothing without lambda: most likely it was
// forgotten.
func (s *Settings) checkNoLambda() error {
	if l, d := s.Lambda, defaultLambda(); l.Ingress != d.Ingress || l.CallbackURL != d.CallbackURL || l.Functions != d.Functions {
		return complaint("lambda", "lambda-ingress, callback-url or a name of a function is set, but it is not")
	}
	return nil
}

func (s *Settings) checkCallback() error {
	l := s.Lambda
	var errs []error
	if err := checkAddress(l.CallbackListen); err != nil {
		errs = append(errs, complaint("callback-listen", "%w", err))
	} else if l.CallbackCert == "" && !isNearby(l.CallbackListen) && len(s.BehindProxy) == 0 {
		errs = append(errs, complaint("callback-listen", "without callback-tls-cert it must be a loopback or private address, or there must be a proxy (behind-proxy): the secret would go over the network in the clear"))
	}
	if (l.CallbackCert == "") != (l.CallbackKey == "") {
		errs = append(errs, complaint("callback-tls-cert", "it needs callback-tls-key, and the other way round"))
	}
	if l.CallbackSecretFile != "" && l.CallbackSecretARN != "" {
		errs = append(errs, complaint("callback-secret-file", "it excludes callback-secret-arn"))
	}
	if l.CallbackSecretARN != "" && !strings.HasPrefix(l.CallbackSecretARN, "arn:") {
		errs = append(errs, complaint("callback-secret-arn", "it must be the ARN of a secret, not the secret itself"))
	}
	if l.CallbackURL != "" {
		if err := apigw.CheckFront(l.CallbackURL); err != nil {
			errs = append(errs, complaint("callback-url", "%w", err))
		}
	} else if strings.HasSuffix(l.CallbackListen, ":0") {
		errs = append(errs, complaint("callback-url", "it is needed, as callback-listen does not say the port"))
	} else if err := apigw.CheckFront(s.callbackURL()); err != nil {
		errs = append(errs, complaint("callback-url", "it is needed, as callback-listen is no address that the functions could call"))
	}
	return errors.Join(errs...)
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

// callbackURL is the address that the functions are told.
func (s *Settings) callbackURL() string {
	if s.Lambda.CallbackURL != "" {
		return s.Lambda.CallbackURL
	}
	u := url.URL{Scheme: "http", Host: s.Lambda.CallbackListen}
	if s.Lambda.CallbackCert != "" {
		u.Scheme = "https"
	}
	return u.String()
}

// callbackSecretFile is where the secret is, if it is in a file.
func (s *Settings) callbackSecretFile() (name string, ours bool) {
	if s.Lambda.CallbackSecretFile != "" {
		return s.Lambda.CallbackSecretFile, false
	}
	return filepath.Join(s.DataDir, "callback-secret"), true
}

// queueOrFunction says in the log where frames go.
func (s *Settings) queueOrFunction() string {
	if s.Lambda.Ingress != "" {
		return s.Lambda.Ingress
	}
	return fmt.Sprintf("function %s", s.Lambda.Functions.Message)
}
