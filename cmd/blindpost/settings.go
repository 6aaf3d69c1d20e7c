package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/peterbourgon/ff/v3"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/push"
)

// envPrefix begins the names of the environment variables.
const envPrefix = "BLINDPOST"

// Settings are what `blindpost serve` can be told. Each has a flag, an
// environment variable and a key in the settings file; the flag wins over the
// variable, the variable over the file. No setting is a secret: secrets come
// from files that settings name.
type Settings struct {
	Listen         string
	DataDir        string
	BehindProxy    []netip.Prefix
	MetricsListen  string // "" is off
	Pprof          bool   // on the metrics address
	ShutdownSpread time.Duration
	TLS            TLSSettings
	Log            LogSettings
	Push           push.Text
	Limits         Limits
	Transport      Transport
	Agentknock     AgentknockSettings
	Aelos          AelosSettings
	Lambda         LambdaSettings
}

// TLSSettings say where certificates come from; see [Settings.TLSSource].
type TLSSettings struct {
	Cert, Key   string // PEM files
	ACMEDomains []string
	ACMEEmail   string
}

// LogSettings say what the log looks like.
type LogSettings struct {
	Level  slog.Level
	Format string // "text" or "json"
}

// Limits are the limits of the specifications. They can be changed while the
// relay runs; see reload.go. 0 lifts MailboxCap, NamespaceTTL and the rates.
type Limits struct {
	MaxFrame               int64 // bytes
	MaxLiveFrame           int64 // bytes
	ChallengeTimeout       time.Duration
	MailboxCap             int64 // messages per recipient
	MessageTTL             time.Duration
	NamespaceTTL           time.Duration
	ConnectionsPerIP       int64 // per minute
	MessagesPerMinute      int64 // per connection
	ControlFramesPerMinute int64 // per connection
	PairingTTL             time.Duration
	PairingTTLMax          time.Duration
	Aelos                  aelos.Limits
	Agentknock             agentknock.Limits
}

// Transport are the limits of the WebSocket front. They hold until the process
// ends.
type Transport struct {
	IdleTimeout    time.Duration
	PingInterval   time.Duration
	SendBuffer     int64 // bytes per connection
	WriteTimeout   time.Duration
	MaxConnections int64 // 0 is no limit
}

// settingsFlags is the flag set of Settings, and its names in groups, for the
// help.
type settingsFlags struct {
	*flag.FlagSet
	groups []flagGroup
}

type flagGroup struct {
	title string
	names []string
}

func (f *settingsFlags) group(title string) {
	f.groups = append(f.groups, flagGroup{title: title})
}

func (f *settingsFlags) add(v flag.Value, name, usage string) {
	f.Var(v, name, usage)
	g := &f.groups[len(f.groups)-1]
	g.names = append(g.names, name)
}

// defaultSettings are the settings of someone who says nothing.
func defaultSettings() Settings {
	return Settings{
		Listen:         ":8443",
		DataDir:        "blindpost-data",
		MetricsListen:  "127.0.0.1:9464",
		ShutdownSpread: 5 * time.Second,
		Log:            LogSettings{Level: slog.LevelInfo, Format: "json"},
		Push:           push.Text{Title: "Skald", Body: "Action required"},
		Limits: Limits{
			MaxFrame:               64 << 10,
			MaxLiveFrame:           512 << 10,
			ChallengeTimeout:       30 * time.Second,
			MailboxCap:             200,
			MessageTTL:             7 * 24 * time.Hour,
			NamespaceTTL:           7 * 24 * time.Hour,
			ConnectionsPerIP:       30,
			MessagesPerMinute:      60,
			ControlFramesPerMinute: 60,
			PairingTTL:             300 * time.Second,
			PairingTTLMax:          600 * time.Second,
			Aelos:                  aelos.DefaultLimits(),
			Agentknock:             agentknock.DefaultLimits(),
		},
		Aelos:  AelosSettings{Controller: aelos.DefaultController},
		Lambda: defaultLambda(),
		Transport: Transport{
			IdleTimeout:  120 * time.Second,
			PingInterval: 30 * time.Second,
			SendBuffer:   4 << 20,
			WriteTimeout: 10 * time.Second,
		},
	}
}

// flags makes the flags that set s. Their defaults are what s holds.
func (s *Settings) flags(config *string) *settingsFlags {
	f := &settingsFlags{FlagSet: newFlags("serve")}

	f.group("General")
	f.add((*stringValue)(config), "config", "YAML `file` with settings, one \"name: value\" a line, names as here without the dashes")
	f.add((*stringValue)(&s.Listen), "listen", "`address` for clients")
	f.add((*stringValue)(&s.DataDir), "data-dir", "`folder` for the database and certificates")
	f.add((*stringValue)(&s.MetricsListen), "metrics-listen", "`address` for Prometheus, or \"off\"")
	f.add((*boolValue)(&s.Pprof), "pprof", "serve profiles of the process under /debug/pprof/ on the metrics address")
	f.add((*levelValue)(&s.Log.Level), "log-level", "`level`: debug, info, warn or error")
	f.add((*stringValue)(&s.Log.Format), "log-format", "`format`: text or json")
	f.add((*durationValue)(&s.ShutdownSpread), "shutdown-spread", "`time` over which a shutdown spreads its closes, so that clients do not all come back at once")

	f.group("TLS (without any of these: a certificate for localhost, signed by itself)")
	f.add((*stringValue)(&s.TLS.Cert), "tls-cert", "PEM `file` with the certificate chain; read again when it changes")
	f.add((*stringValue)(&s.TLS.Key), "tls-key", "PEM `file` with the private key")
	f.add((*listValue)(&s.TLS.ACMEDomains), "acme-domain", "`domains` to get certificates for from Let's Encrypt, which must reach this relay on port 443; separated by commas, or repeated")
	f.add((*stringValue)(&s.TLS.ACMEEmail), "acme-email", "`address` that Let's Encrypt may write to")
	f.add((*prefixesValue)(&s.BehindProxy), "behind-proxy", "`addresses` or CIDRs of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed; separated by commas, or repeated. Alone, it makes the relay speak plain HTTP")

	f.group("Limits (can be changed while the relay runs: edit the file and send SIGHUP)")
	f.add((*sizeValue)(&s.Limits.MaxFrame), "max-frame", "largest frame in `bytes`, but for live messages")
	f.add((*sizeValue)(&s.Limits.MaxLiveFrame), "max-live-frame", "largest frame in `bytes` of a live message")
	f.add((*durationValue)(&s.Limits.ChallengeTimeout), "challenge-timeout", "`time` to authenticate")
	f.add((*countValue)(&s.Limits.MailboxCap), "mailbox-cap", "`messages` that wait for one recipient; 0: no limit")
	f.add((*durationValue)(&s.Limits.MessageTTL), "message-ttl", "`time` that a message waits before it is dropped")
	f.add((*durationValue)(&s.Limits.NamespaceTTL), "namespace-ttl", "`time` that a namespace lives without any connection; 0: for ever")
	f.add((*countValue)(&s.Limits.ConnectionsPerIP), "connections-per-ip", "`connections` a minute from one address (IPv6: one /64); 0: no limit")
	f.add((*countValue)(&s.Limits.MessagesPerMinute), "messages-per-minute", "`messages` a minute on one connection; 0: no limit")
	f.add((*countValue)(&s.Limits.ControlFramesPerMinute), "control-frames-per-minute", "other `frames` a minute on one connection; 0: no limit")
	f.add((*durationValue)(&s.Limits.PairingTTL), "pairing-ttl", "`time` that a pairing window is open if the agent does not say")
	f.add((*durationValue)(&s.Limits.PairingTTLMax), "pairing-ttl-max", "longest `time` that a pairing window is open")

	f.group("Limits of the transport (need a restart)")
	f.add((*durationValue)(&s.Transport.IdleTimeout), "idle-timeout", "`time` of silence after which a connection is closed")
	f.add((*durationValue)(&s.Transport.PingInterval), "ping-interval", "`time` between two pings")
	f.add((*sizeValue)(&s.Transport.SendBuffer), "send-buffer", "`bytes` that wait for one slow reader before it is closed")
	f.add((*durationValue)(&s.Transport.WriteTimeout), "write-timeout", "`time` that a reader may take for 64 KiB")
	f.add((*countValue)(&s.Transport.MaxConnections), "max-connections", "open WebSocket `connections`; 0: no limit")

	f.group("Push")
	f.add((*stringValue)(&s.Push.Title), "push-title", "`title` of every push; it must not depend on content")
	f.add((*stringValue)(&s.Push.Body), "push-body", "`text` of every push")

	s.agentknockFlags(f)
	s.aelosFlags(f)
	s.lambdaFlags(f)
	return f
}

// ParseSettings reads the settings from the arguments, from the environment of
// the process and from the file that either names. For --help it prints all
// settings to out and returns flag.ErrHelp. Every other error says which setting
// is wrong and where it stands. An environment variable that is set to nothing
// counts as not set.
func ParseSettings(args []string, out io.Writer) (Settings, error) {
	s := defaultSettings()
	var config string
	f := s.flags(&config)
	if err := f.checkEnv(os.Environ()); err != nil {
		return Settings{}, err
	}
	err := ff.Parse(f.FlagSet, args,
		ff.WithEnvVarPrefix(envPrefix),
		ff.WithConfigFileFlag("config"),
		ff.WithConfigFileParser(f.parseFile))
	switch {
	case errors.Is(err, flag.ErrHelp):
		// The defaults, not what the arguments before --help have set.
		d := defaultSettings()
		d.flags(new(string)).help(out)
		return Settings{}, flag.ErrHelp
	case err != nil:
		return Settings{}, fmt.Errorf("failed to read the settings: %w", err)
	case f.NArg() > 0:
		return Settings{}, fmt.Errorf("failed to read the settings: unexpected argument %q", f.Arg(0))
	}
	if s.MetricsListen == "off" {
		s.MetricsListen = ""
	}
	if err := s.check(); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// envName is the environment variable of a flag.
func envName(flagName string) string {
	return envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// checkEnv refuses variables with our prefix that name no setting: most likely
// they are misspelt.
func (f *settingsFlags) checkEnv(environ []string) error {
	known := map[string]bool{}
	f.VisitAll(func(fl *flag.Flag) { known[envName(fl.Name)] = true })
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, envPrefix+"_") && !known[name] {
			return fmt.Errorf("failed to read the settings: unknown environment variable %s", name)
		}
	}
	return nil
}

// help prints all settings in their groups.
func (f *settingsFlags) help(out io.Writer) {
	fmt.Fprintf(out, "Usage: blindpost serve [flags]\n\n"+
		"Every flag can also be set as an environment variable (--log-level: %s)\n"+
		"or in the settings file (log-level: debug). The flag wins over the variable, the\n"+
		"variable over the file.\n", envName("log-level"))
	for _, g := range f.groups {
		fmt.Fprintf(out, "\n%s\n", g.title)
		for _, name := range g.names {
			helpFlag(out, f.Lookup(name), "")
		}
	}
}
