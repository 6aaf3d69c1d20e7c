package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/gateway/remote/invoke"
)

// parse reads settings from arguments and, unless it is "", a settings file.
func parse(t testing.TB, file string, args ...string) (Settings, error) {
	t.Helper()
	if file != "" {
		name := filepath.Join(t.TempDir(), "blindpost.yaml")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"--config", name}, args...)
	}
	return ParseSettings(args, &bytes.Buffer{})
}

func TestDefaults(t *testing.T) {
	s, err := parse(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if want := defaultSettings(); !reflect.DeepEqual(s, want) {
		t.Errorf("settings are %+v\nwant %+v", s, want)
	}
	// The defaults of section 10 of the Skald specification.
	want := Limits{
		MaxFrame: 65536, MaxLiveFrame: 524288, ChallengeTimeout: 30 * time.Second, MailboxCap: 200,
		MessageTTL: 168 * time.Hour, NamespaceTTL: 168 * time.Hour, ConnectionsPerIP: 30, MessagesPerMinute: 60,
		ControlFramesPerMinute: 60, PairingTTL: 300 * time.Second, PairingTTLMax: 600 * time.Second,
		// Those of section 2 of the Aelos specification, and rates that hold what it says.
		Aelos: aelos.Limits{
			MaxFrame: 65536, MaxViewers: 8, HelloTimeout: 5 * time.Second,
			BoatFrames: 1500, ViewerFrames: 120, Commands: 60,
			CommandBytes: 256 << 10, MaxHandshake: 4 << 10, Handshakes: 120,
		},
		// The retention of the Agentknock specification, and limits that an honest client does not meet.
		Agentknock: agentknock.Limits{
			ClientExchangesPerMinute: 60, DeviceExchangesPerMinute: 240, ClientOpenExchanges: 64, DeviceOpenExchanges: 256,
			ClientStoredBytes: 8 << 20, DeviceStoredBytes: 32 << 20, FramesPerMinute: 1200,
			ExchangeTTL: 24 * time.Hour, RecoveryTTL: 24 * time.Hour, PairingTTL: time.Hour, WakeInterval: 30 * time.Second,
		},
	}
	if s.Limits != want || s.Transport.IdleTimeout != 120*time.Second || s.Transport.PingInterval != 30*time.Second {
		t.Errorf("limits are %+v, %+v", s.Limits, s.Transport)
	}
}

const everything = `
# comment
listen: 127.0.0.1:1
data-dir: /srv/bp
behind-proxy: [10.1.2.3/8, "::1"]
metrics-listen: 127.0.0.1:2
pprof: true
shutdown-spread: 1m
acme-domain: [a.example.org, b.example.org]
acme-email: me@example.org
log-level: DEBUG
log-format: json
push-title: "No: 1"
push-body: 0x10
max-frame: 32KiB
max-live-frame: 1MiB
challenge-timeout: 10s
mailbox-cap: 0
message-ttl: 1h30m
namespace-ttl: 0s
connections-per-ip: 1
messages-per-minute: 2
control-frames-per-minute: 3
pairing-ttl: 60s
pairing-ttl-max: 2m
idle-timeout: 60s
ping-interval: 5s
send-buffer: 2097152
write-timeout: 500ms
max-connections: 1000
aelos-secret-file: /run/secrets/aelos
aelos-path: /relay
aelos-controller: roles=controller
aelos-max-frame: 32KiB
aelos-max-viewers: 3
aelos-hello-timeout: 6s
aelos-clock-leeway: 7s
aelos-boat-frames-per-minute: 4
aelos-viewer-frames-per-minute: 5
aelos-commands-per-minute: 0
aelos-command-bytes-per-minute: 64KiB
aelos-max-handshake: 2KiB
aelos-handshakes-per-minute: 8
aelos-max-viewers-per-user: 2
aelos-max-token-life: 25h
agentknock-attestation: require
agentknock-attestation-roots: /etc/roots.pem
agentknock-client-exchanges-per-minute: 1
agentknock-device-exchanges-per-minute: 2
agentknock-client-open-exchanges: 3
agentknock-device-open-exchanges: 4
agentknock-client-stored-bytes: 5KiB
agentknock-device-stored-bytes: 6KiB
agentknock-frames-per-minute: 0
agentknock-exchange-ttl: 7d
agentknock-recovery-ttl: 8h
agentknock-pairing-ttl: 9m
agentknock-wake-interval: 10s
lambda: http://127.0.0.1:3001
lambda-region: eu-west-3
lambda-connect: c
lambda-message: m
lambda-disconnect: d
lambda-ingress: http://127.0.0.1:9324/0/ingress.fifo
lambda-timeout: 28s
lambda-path-parameter: path
callback-listen: 10.0.0.1:3
callback-url: https://front.example.org/x
callback-tls-cert: /c.pem
callback-tls-key: /k.pem
callback-secret-file: /run/secrets/front
callback-secret-arn: ""
`

func controller(t *testing.T, s string) aelos.Controller {
	t.Helper()
	c, err := aelos.ParseController(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFileSetsEverything(t *testing.T) {
	s, err := parse(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Listen: "127.0.0.1:1", DataDir: "/srv/bp", MetricsListen: "127.0.0.1:2", Pprof: true, ShutdownSpread: time.Minute,
		BehindProxy: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		TLS:         TLSSettings{ACMEDomains: []string{"a.example.org", "b.example.org"}, ACMEEmail: "me@example.org"},
		Log:         LogSettings{Level: slog.LevelDebug, Format: "json"},
		Limits: Limits{
			MaxFrame: 32 << 10, MaxLiveFrame: 1 << 20, ChallengeTimeout: 10 * time.Second, MailboxCap: 0,
			MessageTTL: 90 * time.Minute, NamespaceTTL: 0, ConnectionsPerIP: 1, MessagesPerMinute: 2,
			ControlFramesPerMinute: 3, PairingTTL: time.Minute, PairingTTLMax: 2 * time.Minute,
			Aelos: aelos.Limits{
				MaxFrame: 32 << 10, MaxViewers: 3, HelloTimeout: 6 * time.Second, Leeway: 7 * time.Second, BoatFrames: 4, ViewerFrames: 5,
				CommandBytes: 64 << 10, MaxHandshake: 2 << 10, Handshakes: 8, MaxViewersPerSub: 2, MaxTokenLife: 25 * time.Hour,
			},
			Agentknock: agentknock.Limits{
				ClientExchangesPerMinute: 1, DeviceExchangesPerMinute: 2, ClientOpenExchanges: 3, DeviceOpenExchanges: 4,
				ClientStoredBytes: 5 << 10, DeviceStoredBytes: 6 << 10,
				ExchangeTTL: 168 * time.Hour, RecoveryTTL: 8 * time.Hour, PairingTTL: 9 * time.Minute, WakeInterval: 10 * time.Second,
			},
		},
		Agentknock: AgentknockSettings{Attestation: attest.Require, AttestationRoots: "/etc/roots.pem"},
		Aelos:      AelosSettings{SecretFile: "/run/secrets/aelos", Path: "/relay", Controller: controller(t, "roles=controller")},
		Lambda: LambdaSettings{
			URL: "http://127.0.0.1:3001", Region: "eu-west-3", Functions: invoke.Functions{Connect: "c", Message: "m", Disconnect: "d"},
			Ingress: "http://127.0.0.1:9324/0/ingress.fifo", Timeout: 28 * time.Second, PathParam: "path",
			CallbackListen: "10.0.0.1:3", CallbackURL: "https://front.example.org/x", CallbackCert: "/c.pem", CallbackKey: "/k.pem",
			CallbackSecretFile: "/run/secrets/front",
		},
		Transport: Transport{
			IdleTimeout: time.Minute, PingInterval: 5 * time.Second, SendBuffer: 2 << 20,
			WriteTimeout: 500 * time.Millisecond, MaxConnections: 1000,
		},
	}
	want.Push.Title, want.Push.Body = "No: 1", "0x10"
	if !reflect.DeepEqual(s, want) {
		t.Errorf("settings are %+v\nwant %+v", s, want)
	}
	// The file above names every setting there is, but for the TLS files.
	defaults := defaultSettings()
	defaults.flags(new(string)).VisitAll(func(f *flag.Flag) {
		if !strings.Contains(everything, "\n"+f.Name+":") && f.Name != "config" && f.Name != "tls-cert" && f.Name != "tls-key" {
			t.Errorf("the test lacks %s", f.Name)
		}
	})
}

func TestFlagBeatsVariableBeatsFile(t *testing.T) {
	file := "mailbox-cap: 1\nconnections-per-ip: 1\nmessages-per-minute: 1\nbehind-proxy: 10.0.0.1"
	t.Setenv("BLINDPOST_MAILBOX_CAP", "2")
	t.Setenv("BLINDPOST_CONNECTIONS_PER_IP", "2")
	t.Setenv("BLINDPOST_LISTEN", "") // as good as not set
	s, err := parse(t, file, "--mailbox-cap=3", "-behind-proxy", "10.0.0.2, 10.0.0.3", "-behind-proxy", "10.0.0.4")
	if err != nil {
		t.Fatal(err)
	}
	l := s.Limits
	if l.MailboxCap != 3 || l.ConnectionsPerIP != 2 || l.MessagesPerMinute != 1 || s.Listen != ":8443" {
		t.Errorf("limits are %+v, listen is %q", l, s.Listen)
	}
	if got := fmt.Sprint(s.BehindProxy); got != "[10.0.0.2/32 10.0.0.3/32 10.0.0.4/32]" {
		t.Errorf("behind-proxy is %s", got)
	}
}

func TestMetricsOff(t *testing.T) {
	for _, file := range []string{"metrics-listen: off", `metrics-listen: ""`} {
		if s, err := parse(t, file); err != nil || s.MetricsListen != "" {
			t.Errorf("%s: %q, %v", file, s.MetricsListen, err)
		}
	}
	t.Setenv("BLINDPOST_METRICS_LISTEN", "off")
	if s, err := parse(t, "", "--pprof=false"); err != nil || s.MetricsListen != "" || s.Pprof {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestFileNamedByVariable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(name, []byte("mailbox-cap: 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BLINDPOST_CONFIG", name)
	s, err := parse(t, "")
	if err != nil || s.Limits.MailboxCap != 7 {
		t.Errorf("mailbox-cap is %d, %v", s.Limits.MailboxCap, err)
	}
}

func TestErrorsNameTheSetting(t *testing.T) {
	tests := []struct {
		name string
		file string
		env  string
		args string
		want string // in the error
	}{
		{name: "unknown flag", args: "--mailbox-size=1", want: "mailbox-size"},
		{name: "bad flag", args: "--mailbox-cap=many", want: "flag -mailbox-cap: it must be a whole number"},
		{name: "negative count", args: "--mailbox-cap=-1", want: "flag -mailbox-cap: it must be a whole number, 0 or more"},
		{name: "time without unit", args: "--idle-timeout=120", want: "flag -idle-timeout: it must be a time with its unit"},
		{name: "negative time", args: "--message-ttl=-1h", want: "flag -message-ttl"},
		{name: "bad size", args: "--max-frame=64KB", want: "flag -max-frame: it must be a number of bytes"},
		{name: "huge size", args: "--max-frame=9223372036854775807KiB", want: "flag -max-frame: it must be a number of bytes"},
		{name: "bad level", args: "--log-level=loud", want: "flag -log-level: it must be debug"},
		{name: "bad CIDR", args: "--behind-proxy=10.0.0.0/8,10.0.0.0/33", want: `flag -behind-proxy: "10.0.0.0/33" is neither`},
		{name: "address with zone", args: "--behind-proxy=fe80::1%eth0", want: "flag -behind-proxy"},
		{name: "argument", args: "serve", want: `unexpected argument "serve"`},

		{name: "unknown variable", env: "BLINDPOST_MAILBOXCAP=1", want: "BLINDPOST_MAILBOXCAP"},
		{name: "unknown empty variable", env: "BLINDPOST_X=", want: "BLINDPOST_X"},
		{name: "bad variable", env: "BLINDPOST_MAILBOX_CAP=x", want: `"BLINDPOST_MAILBOX_CAP": it must be a whole number`},

		{name: "no such file", args: "--config=/does/not/exist", want: "/does/not/exist"},
		{name: "unknown key", file: "mailbox_cap: 1", want: `unknown setting "mailbox_cap"`},
		{name: "name of a variable as key", file: "BLINDPOST_MAILBOX_CAP: 1", want: `unknown setting "BLINDPOST_MAILBOX_CAP"`},
		{name: "file names a file", file: "config: other.yaml", want: `unknown setting "config"`},
		{name: "bad value", file: "mailbox-cap: 1.5", want: `"mailbox-cap" from config file: it must be a whole number`},
		{name: "no value", file: "mailbox-cap:", want: `"mailbox-cap" has no value`},
		{name: "two values", file: "mailbox-cap: [1, 2]", want: `"mailbox-cap" takes one value`},
		{name: "map", file: "limits:\n  mailbox-cap: 1", want: `unknown setting "limits"`},
		{name: "map as value", file: "mailbox-cap: {a: 1}", want: `"mailbox-cap" must be one value`},
		{name: "key twice", file: "mailbox-cap: 1\nmailbox-cap: 2", want: "mailbox-cap"},
		{name: "no map", file: "- a", want: "settings file"},
		{name: "no YAML", file: "a: [", want: "settings file"},
		{name: "too large", file: "# " + strings.Repeat("x", 1<<20), want: "larger than"},

		{name: "listen", args: "--listen=8443", want: `setting listen: "8443" is no address`},
		{name: "port", args: "--listen=:99999", want: "setting listen"},
		{name: "metrics-listen", args: "--metrics-listen=x", want: "setting metrics-listen"},
		{name: "same address", args: "--listen=:1 --metrics-listen=:1", want: "setting metrics-listen: it is the same"},
		{name: "profiles without an address", args: "--pprof --metrics-listen=off", want: "setting pprof: it needs metrics-listen"},
		{name: "bad bool", file: "pprof: yes please", want: `"pprof" from config file: it must be true or false`},
		{name: "no data folder", args: "--data-dir=", want: "setting data-dir"},
		{name: "log format", args: "--log-format=xml", want: `setting log-format: "xml"`},
		{name: "certificate alone", args: "--tls-cert=c", want: "setting tls-cert: it needs tls-key"},
		{name: "key alone", args: "--tls-key=k", want: "setting tls-key: it needs tls-cert"},
		{name: "two sources", args: "--tls-cert=c --tls-key=k --acme-domain=a.example.org", want: "setting acme-domain: it excludes tls-cert"},
		{name: "ACME for an address", args: "--acme-domain=192.0.2.1", want: "setting acme-domain: \"192.0.2.1\" is an address"},
		{name: "ACME for a wildcard", args: "--acme-domain=*.example.org", want: "setting acme-domain"},
		{name: "ACME for a URL", args: "--acme-domain=https://example.org", want: "setting acme-domain"},
		{name: "ACME for localhost", args: "--acme-domain=localhost", want: "setting acme-domain"},
		{name: "ACME for dots", args: "--acme-domain=a..b", want: "setting acme-domain"},
		{name: "e-mail without ACME", args: "--acme-email=me@example.org", want: "setting acme-email: it needs acme-domain"},
		{name: "message-ttl 0", args: "--message-ttl=0s", want: "setting message-ttl: it must be more than 0"},
		{name: "message-ttl for ever", args: "--message-ttl=1000000h", want: "setting message-ttl: it must be at most 876000h"},
		{name: "small frame", args: "--max-frame=1KiB", want: "setting max-frame: it must be at least 4KiB"},
		{name: "frame that no item holds", args: "--max-frame=400KiB", want: "setting max-frame: it must be at most 392KiB"},
		{name: "live below stored", args: "--max-live-frame=32KiB", want: "setting max-live-frame"},
		{name: "buffer below frame", args: "--send-buffer=256KiB", want: "setting send-buffer: it is smaller than max-live-frame"},
		{name: "slow pings", args: "--ping-interval=2m", want: "setting ping-interval"},
		{name: "pairing default above most", args: "--pairing-ttl=11m", want: "setting pairing-ttl: it is longer"},
		{name: "pairing in parts of seconds", args: "--pairing-ttl=1500ms", want: "setting pairing-ttl, pairing-ttl-max: they must be whole"},
		{name: "zero timeouts", args: "--write-timeout=0s", want: "setting write-timeout: it must be more than 0"},
		{name: "long title", args: "--push-title=" + strings.Repeat("t", 257), want: "setting push-title"},
		{name: "no claim", args: "--aelos-controller=ctl", want: `flag -aelos-controller: "ctl" is no claim`},
		{name: "a claim of the protocol", args: "--aelos-controller=role=viewer", want: `flag -aelos-controller: claim "role" has`},
		{name: "Aelos path without a secret", args: "--aelos-path=/relay", want: "setting aelos-path: it needs aelos-secret-file"},
		{name: "Aelos path of another protocol", args: "--aelos-secret-file=s --aelos-path=/v1/ws", want: `setting aelos-path: "/v1/ws" is or may be taken`},
		{name: "Aelos path with a query", args: "--aelos-secret-file=s --aelos-path=/a?b", want: "setting aelos-path"},
		{name: "no viewers", args: "--aelos-max-viewers=0", want: "setting aelos-max-viewers: it must be more than 0"},
		{name: "small Aelos frame", args: "--aelos-max-frame=1KiB", want: "setting aelos-max-frame: it must be at least 2KiB"},
		{name: "no time for hello", args: "--aelos-hello-timeout=0s", want: "setting aelos-hello-timeout"},
		{name: "a demand that there is not", args: "--agentknock-attestation=on", want: "flag -agentknock-attestation: it must be off, check or require"},
		{name: "attestation without roots", args: "--agentknock-attestation=check", want: "setting agentknock-attestation: it needs a file with the roots"},
		{name: "demand without roots", args: "--agentknock-attestation=require", want: "setting agentknock-attestation: it needs a file with the roots"},
		{name: "roots that nobody uses", args: "--agentknock-attestation-roots=r.pem", want: "setting agentknock-attestation: roots are named"},
		{name: "spread", args: "--shutdown-spread=2h", want: "setting shutdown-spread: it must be at most 1h"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if name, value, ok := strings.Cut(tt.env, "="); ok {
				t.Setenv(name, value)
			}
			s, err := parse(t, tt.file, strings.Fields(tt.args)...)
			if err == nil {
				t.Fatalf("settings were taken: %+v", s)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %q, want %q in it", err, tt.want)
			}
			if !reflect.DeepEqual(s, Settings{}) {
				t.Errorf("settings come with the error: %+v", s)
			}
		})
	}
}

func TestAllThatIsWrongIsSaid(t *testing.T) {
	_, err := parse(t, "", "--listen=x", "--data-dir=", "--tls-cert=c", "--message-ttl=0s")
	for _, want := range []string{"listen", "data-dir", "tls-cert", "message-ttl"} {
		if err == nil || !strings.Contains(err.Error(), "setting "+want) {
			t.Errorf("error is %q, want %q in it", err, want)
		}
	}
}

func TestHelpNamesEverySettingWithItsDefault(t *testing.T) {
	var out bytes.Buffer
	if _, err := ParseSettings([]string{"--mailbox-cap=5", "--help"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("error is %v", err)
	}
	help := out.String()
	d := defaultSettings()
	d.flags(new(string)).VisitAll(func(f *flag.Flag) {
		if !regexp.MustCompile(`(?m)^  --` + f.Name + `( |$)`).MatchString(help) {
			t.Errorf("help lacks %s", f.Name)
		}
	})
	for _, want := range []string{
		"--max-frame BYTES", "(default 64KiB)", "(default 512KiB)", "(default 4MiB)", "(default 30s)", "(default 2m)", "(default 168h)",
		"(default 200)", "(default 5m)", "(default 10m)", "(default :8443)", "(default 127.0.0.1:9464)", "(default blindpost-data)",
		"(default info)", "(default json)", "(default Skald)", "(default Action required)", "BLINDPOST_LOG_LEVEL",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("help lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(help)
	}
}

// What a value prints is read as the same value; see also `differences`.
func TestValuesPrintAsTheyAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, duration := sizeValue(rapid.Int64Min(0).Draw(t, "size")), durationValue(rapid.Int64Min(0).Draw(t, "duration"))
		if rapid.Bool().Draw(t, "round") {
			size, duration = size>>30<<30, duration/durationValue(time.Minute)*durationValue(time.Minute)
		}
		var size2 sizeValue
		var duration2 durationValue
		if err := size2.Set(size.String()); err != nil || size2 != size {
			t.Errorf("size %d prints %s and is read as %d, %v", size, &size, size2, err)
		}
		if err := duration2.Set(duration.String()); err != nil || duration2 != duration {
			t.Errorf("time %d prints %s and is read as %d, %v", duration, &duration, duration2, err)
		}
	})
}

func FuzzSettingsFile(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("mailbox-cap: 1\nlisten: [a"))
	f.Add([]byte("a: &a [*a, {b: !!binary xx}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := defaultSettings()
		fs := s.flags(new(string))
		if err := fs.parseFile(bytes.NewReader(data), fs.Set); err == nil {
			_ = s.check()
		}
	})
}
