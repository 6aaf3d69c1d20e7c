package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	skaldclient "blindpost/shared/client/skald"
)

// defaultRelay is where `blindpost serve` listens by default.
const defaultRelay = "wss://localhost:8443/v1/ws"

// chatFlags are the flags that agent and client share.
type chatFlags struct {
	*flag.FlagSet
	about string
	names []string // in the order of the help

	relay    string
	insecure bool
	ca       string
	state    string
	stay     bool
}

// newChatFlags makes the flags of a command. about is the first part of its
// help.
func newChatFlags(e env, command, about, relay, relayUsage string) *chatFlags {
	f := &chatFlags{FlagSet: newFlags(command), about: about}
	f.text(&f.relay, "relay", relay, relayUsage)
	f.yes(&f.insecure, "insecure", "accept any certificate of the relay, for instance the one that a relay on this computer has signed itself")
	f.text(&f.ca, "ca", "", "PEM `file` with a certificate to trust besides those of the system; `blindpost serve` puts its own into blindpost-data/tls/"+selfSignedPublic)
	f.text(&f.state, "state", stateFile(e, command), "`file` with identity, peers and counters; keep it to yourself")
	f.yes(&f.stay, "stay", "go on when the input ends; without it, the end of the input ends the command")
	return f
}

func (f *chatFlags) text(v *string, name, value, usage string) {
	f.StringVar(v, name, value, usage)
	f.names = append(f.names, name)
}

func (f *chatFlags) yes(v *bool, name, usage string) {
	f.BoolVar(v, name, false, usage)
	f.names = append(f.names, name)
}

// parse reads the arguments. ok is false if the command ends here, with status.
func (f *chatFlags) parse(e env, args []string) (status int, ok bool) {
	err := parseArgs(f.FlagSet, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.help(e.stdout)
		return 0, false
	case err == nil && f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case err == nil && f.state == "":
		err = errors.New("there is no place for the state: name one with --state FILE")
	}
	if err != nil {
		fmt.Fprintf(e.stderr, "%s: %v\n`%s --help` lists the flags.\n", f.Name(), err, f.Name())
		return 2, false
	}
	return 0, true
}

func (f *chatFlags) help(w io.Writer) {
	fmt.Fprintf(w, "Usage: %s [flags]\n\n%s\n\n", f.Name(), f.about)
	for _, name := range f.names {
		helpFlag(w, f.Lookup(name))
	}
}

// stateFile is where a command keeps its state by default; "" if the system does
// not say where a user's settings are.
func stateFile(e env, command string) string {
	dir := e.variable("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return ""
		}
	}
	return filepath.Join(dir, "blindpost", command+".json")
}

// dial says how to reach the relay. It warns if the certificate
// is not checked.
func (f *chatFlags) dial(s *screen) (skaldclient.DialOptions, error) {
	if strings.HasPrefix(f.relay, "ws://") {
		return skaldclient.DialOptions{}, errors.New("a relay is reached over TLS only: --relay begins with wss://, not ws://")
	}
	roots, err := certPool(f.ca)
	if err != nil {
		return skaldclient.DialOptions{}, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if f.insecure {
		// The user has decided so; messages stay encrypted end to end.
		c.InsecureSkipVerify = true
		s.warn("Careful, --insecure: anybody could pretend to be the relay. Messages stay unreadable for them, but they would see who talks and could hold messages back.")
	}
	return skaldclient.DialOptions{TLSConfig: c}, nil
}

// onThisComputer reports whether a relay URL works on this computer only.
func onThisComputer(relay string) bool {
	u, err := url.Parse(relay)
	return err == nil && isLoopback(u.Hostname())
}

// isLoopback reports whether a host is this computer.
func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
