package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

// doctorSettings are the flags of `blindpost doctor`.
type doctorSettings struct {
	relay    string
	insecure bool
	ca       string
	noAuth   bool
	json     bool
	timeout  time.Duration
}

const doctorAbout = `Checks a Skald relay from outside, step by step as an app does: name, TCP, TLS, HTTP,
WebSocket, challenge, authentication. Says what to do about what is wrong. The exit
status is 0 if all is well, else 1.

It authenticates as a new agent, with keys made for this check. The relay makes a namespace
for it, which expires when it has had no connection for some days.`

// parseDoctor reads the flags. For --help it prints them to out and returns
// flag.ErrHelp.
func parseDoctor(args []string, out io.Writer) (doctorSettings, error) {
	var s doctorSettings
	f := newFlags("doctor")
	f.StringVar(&s.relay, "relay", "", "`URL` of the relay, such as "+defaultRelay+"; a host alone is enough")
	f.BoolVar(&s.insecure, "insecure", false, "accept any certificate, for instance one that a relay has signed itself")
	f.StringVar(&s.ca, "ca", "", "PEM `file` with a certificate to trust besides those of the system")
	f.BoolVar(&s.noAuth, "no-auth", false, "do not authenticate, so that the relay keeps nothing")
	f.BoolVar(&s.json, "json", false, "print one JSON object instead of lines")
	f.DurationVar(&s.timeout, "timeout", 10*time.Second, "`time` that one step may take")
	err := parseArgs(f, args)
	if err == nil && s.relay == "" && f.NArg() == 1 {
		s.relay = f.Arg(0)
	} else if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out, "Usage: blindpost doctor --relay URL [flags]\n\n%s\n\n", doctorAbout)
		helpFlags(out, f)
		return s, err
	case err != nil:
		return s, err
	case s.relay == "":
		return s, errors.New("there is no relay to check: name one with --relay URL")
	case s.timeout <= 0:
		return s, errors.New("--timeout must be more than 0")
	}
	return s, nil
}

// doctorURL completes and checks the URL of a relay: a host alone is enough, and
// people copy https:// too.
func doctorURL(s string) (*url.URL, error) {
	if !strings.Contains(s, "://") {
		s = "wss://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("the URL of the relay cannot be read")
	}
	scheme := map[string]string{"wss": "wss", "https": "wss", "ws": "ws", "http": "ws"}[u.Scheme]
	switch {
	case scheme == "":
		return nil, fmt.Errorf("the URL of a relay begins with wss://, not %s://", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the URL of the relay has no host")
	case u.User != nil:
		return nil, errors.New("the URL of a relay has no user and no password")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = skaldclient.DefaultPath
	}
	u.Scheme, u.Fragment = scheme, ""
	return u, nil
}

// runDoctor checks a relay.
func runDoctor(ctx context.Context, e env, args []string) int {
	s, err := parseDoctor(args, e.stdout)
	var d *doctor
	if err == nil {
		d, err = newDoctor(s)
	}
	if err != nil {
		return noFlags(e, "doctor", err)
	}
	if !s.json {
		fmt.Fprintf(e.stdout, "Checking %s\n\n", printable(d.url.String()))
		d.each = func(c check) { printCheck(e.stdout, c) }
	}
	ok := d.examine(ctx)
	if s.json {
		err = printDoctorJSON(e.stdout, d, ok)
	} else {
		err = printVerdict(e.stdout, ok)
	}
	if err != nil {
		fmt.Fprintf(e.stderr, "blindpost doctor: %v\n", err)
	}
	if !ok || err != nil {
		return 1
	}
	return 0
}

// checkStatus is the outcome of a check.
type checkStatus string

const (
	checkOK      checkStatus = "ok"
	checkFailed  checkStatus = "failed"
	checkSkipped checkStatus = "skipped" // after a failed check, or because of a flag
)

// check is one line of the result.
type check struct {
	Name   string      `json:"name"`
	Status checkStatus `json:"status"`
	Detail string      `json:"detail"`
	// Advice is what to do about a check that has failed.
	Advice string `json:"advice,omitempty"`
}

func passed(format string, args ...any) check {
	return check{Status: checkOK, Detail: fmt.Sprintf(format, args...)}
}

func skipped(why string) check { return check{Status: checkSkipped, Detail: why} }

func failed(advice, format string, args ...any) check {
	return check{Status: checkFailed, Detail: fmt.Sprintf(format, args...), Advice: advice}
}

// doctor examines one relay.
type doctor struct {
	doctorSettings
	url  *url.URL
	now  func() time.Time
	rand io.Reader
	look func(ctx context.Context, host string) ([]string, error)
	each func(check) // is called with each check as it ends

	checks []check
	found  findings
}

// newDoctor checks the settings.
func newDoctor(s doctorSettings) (*doctor, error) {
	u, err := doctorURL(s.relay)
	if err != nil {
		return nil, err
	}
	d := &doctor{
		doctorSettings: s, url: u,
		now: time.Now, rand: rand.Reader, look: net.DefaultResolver.LookupHost, each: func(check) {},
	}
	if d.found.roots, err = certPool(s.ca); err != nil {
		return nil, err
	}
	return d, nil
}

// examine runs all checks and reports whether all is well. A check whose
// prerequisite has failed is skipped.
func (d *doctor) examine(ctx context.Context) bool {
	defer func() {
		if d.found.conn != nil {
			d.found.conn.Close()
		}
	}()
	ok := true
	for _, step := range []struct {
		name  string
		needs bool // skipped once the checks are broken
		run   func(context.Context) check
	}{
		{"name", false, d.checkName},
		{"TCP", true, d.checkTCP},
		{"TLS", true, d.checkTLS},
		{"HTTP", true, d.checkHTTP},
		{"clock", false, d.checkClock},
		{"WebSocket", true, d.checkUpgrade},
		{"challenge", true, d.checkChallenge},
		{"authentication", true, d.checkAuth},
		{"round trip", true, d.checkPing},
	} {
		c := skipped(becauseOfAbove)
		if !step.needs || !d.found.broken {
			stepCtx, cancel := context.WithTimeout(ctx, d.timeout)
			c = step.run(stepCtx)
			cancel()
		}
		if ctx.Err() != nil {
			c = failed("", "interrupted")
			d.found.broken = true
		}
		c.Name = step.name
		ok = ok && c.Status != checkFailed
		d.checks = append(d.checks, c)
		d.each(c)
	}
	return ok
}

// port is the port of the relay.
func (d *doctor) port() string {
	return cmp.Or(d.url.Port(), map[string]string{"ws": "80", "wss": "443"}[d.url.Scheme])
}

func (d *doctor) address() string { return net.JoinHostPort(d.url.Hostname(), d.port()) }

// printCheck prints the outcome of a check, and the advice below.
func printCheck(w io.Writer, c check) {
	word := string(c.Status)
	if c.Status == checkFailed {
		word = "FAILED"
	}
	fmt.Fprintf(w, "%-8s %-15s %s\n", word, c.Name, c.Detail)
	if c.Advice != "" {
		for line := range strings.Lines(c.Advice) {
			fmt.Fprintf(w, "%25s%s\n", "-> ", strings.TrimSuffix(line, "\n"))
		}
	}
}

func printVerdict(w io.Writer, ok bool) error {
	verdict := "All is well: agents and apps can use this relay from here."
	if !ok {
		verdict = "Not all is well: see the lines that FAILED, the first one first."
	}
	_, err := fmt.Fprintf(w, "\n%s\n", verdict)
	return err
}

func printDoctorJSON(w io.Writer, d *doctor, ok bool) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Relay  string  `json:"relay"`
		OK     bool    `json:"ok"`
		Checks []check `json:"checks"`
	}{d.url.String(), ok, d.checks})
}

// printable makes text of the relay fit for a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || (r >= 0x7f && r < 0xa0) {
			return '?'
		}
		return r
	}, s)
}
