package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"blindpost/shared/settings"
	"blindpost/shared/standalone"
)

// parse reads settings from arguments and, unless it is "", a settings file.
func parse(t testing.TB, file string, args ...string) (settings.Values, error) {
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

// with reads settings without checking them against each other.
func with(t testing.TB, lines ...string) settings.Values {
	t.Helper()
	v := settings.For(settings.Binary, settings.Line)
	for _, line := range lines {
		name, text, _ := strings.Cut(line, "=")
		if err := v.Set("", settings.Line, name, text); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func TestDefaults(t *testing.T) {
	v, err := parse(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Differences(settings.Defaults()); len(got) > 0 {
		t.Errorf("who says nothing changes %v", got)
	}
	if got := standalone.LimitsFrom(v); got != standalone.DefaultLimits() {
		t.Errorf("limits are %+v", got)
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
log-format: text
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

// lines are the settings of the file above, by name.
func lines(t *testing.T) map[string]string {
	t.Helper()
	var nodes map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(everything), &nodes); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for name, n := range nodes {
		said[name] = n.Value
		for _, one := range n.Content {
			said[name] += one.Value + ","
		}
	}
	return said
}

// The file above sets every setting to another value than its default. (The two that are
// left out contradict others.)
func TestFileSetsEverything(t *testing.T) {
	v, err := parse(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	said := lines(t)
	for _, s := range settings.All(settings.Binary) {
		switch s.Name {
		case "config", "tls-cert", "tls-key", "callback-secret-arn":
			continue
		}
		if want := with(t, s.Name+"="+said[s.Name]); len(want.Differences(settings.Defaults())) != 1 {
			t.Errorf("the test lacks %s", s.Name)
		} else if !reflect.DeepEqual(v.Differences(want), v.Under(want).Differences(want)) {
			t.Errorf("%s: %q does not arrive", s.Name, said[s.Name])
		}
	}
	if got := fmt.Sprint(settings.BehindProxy.Of(v), settings.ACMEDomains.Of(v)); got != "[10.0.0.0/8 ::1/128] [a.example.org b.example.org]" {
		t.Errorf("lists are %s", got)
	}
	if got := settings.PushTitle.Of(v) + settings.PushBody.Of(v); got != "No: 10x10" {
		t.Errorf("texts are %q", got)
	}
}

func TestFlagBeatsVariableBeatsFile(t *testing.T) {
	file := "mailbox-cap: 1\nconnections-per-ip: 1\nmessages-per-minute: 1\nbehind-proxy: 10.0.0.1\nacme-email: a@b"
	t.Setenv("BLINDPOST_MAILBOX_CAP", "2")
	t.Setenv("BLINDPOST_CONNECTIONS_PER_IP", "2")
	t.Setenv("BLINDPOST_LISTEN", "") // as good as not set
	v, err := parse(t, file, "--mailbox-cap=3", "-behind-proxy", "10.0.0.2, 10.0.0.3", "-behind-proxy", "10.0.0.4", "--acme-email=")
	if err != nil {
		t.Fatal(err)
	}
	l := standalone.LimitsFrom(v).Relay
	if l.MailboxCap != 3 || l.ConnectionsPerIP != 2 || l.MessagesPerMinute != 1 || settings.Listen.Of(v) != ":8443" || settings.ACMEEmail.Of(v) != "" {
		t.Errorf("limits are %+v, listen is %q", l, settings.Listen.Of(v))
	}
	if got := fmt.Sprint(settings.BehindProxy.Of(v)); got != "[10.0.0.2/32 10.0.0.3/32 10.0.0.4/32]" {
		t.Errorf("behind-proxy is %s", got)
	}
}

func TestMetricsOff(t *testing.T) {
	for _, file := range []string{"metrics-listen: off", `metrics-listen: ""`} {
		if v, err := parse(t, file); err != nil || settings.MetricsListen.Of(v) != "" {
			t.Errorf("%s: %v", file, err)
		}
	}
	t.Setenv("BLINDPOST_METRICS_LISTEN", "off")
	if v, err := parse(t, "", "--pprof=false"); err != nil || settings.MetricsListen.Of(v) != "" || settings.Pprof.Of(v) {
		t.Error(err)
	}
}

func TestFileNamedByVariable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(name, []byte("# the cap\nmailbox-cap: 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BLINDPOST_CONFIG", name)
	if v, err := parse(t, ""); err != nil || settings.MailboxCap.Of(v) != 7 {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("# nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := parse(t, ""); err != nil {
		t.Error(err)
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
		{name: "unknown flag", args: "--mailbox-size=1", want: "--mailbox-size: there is no such flag; the nearest is --mailbox-cap"},
		{name: "bad flag", args: "--mailbox-cap=many", want: `--mailbox-cap "many": it must be a whole number, 0 or more`},
		{name: "negative count", args: "--mailbox-cap=-1", want: `--mailbox-cap "-1": it must be a whole number, 0 or more`},
		{name: "time without unit", args: "--idle-timeout=120", want: `--idle-timeout "120": it must be a time with its unit`},
		{name: "negative time", args: "--message-ttl=-1h", want: "--message-ttl"},
		{name: "bad size", args: "--max-frame=64KB", want: `--max-frame "64KB": it must be a number of bytes`},
		{name: "huge size", args: "--max-frame=9223372036854775807KiB", want: "--max-frame"},
		{name: "bad level", args: "--log-level=loud", want: `--log-level "loud": it must be debug`},
		{name: "bad CIDR", args: "--behind-proxy=10.0.0.0/8,10.0.0.0/33", want: `--behind-proxy "10.0.0.0/8,10.0.0.0/33": it must be addresses or CIDRs`},
		{name: "address with zone", args: "--behind-proxy=fe80::1%eth0", want: "--behind-proxy"},
		{name: "argument", args: "serve", want: `unexpected argument "serve"`},

		{name: "unknown variable", env: "BLINDPOST_MAILBOXCAP=1", want: "BLINDPOST_MAILBOXCAP: there is no such setting; the nearest is BLINDPOST_MAILBOX_CAP"},
		{name: "unknown empty variable", env: "BLINDPOST_X=", want: "BLINDPOST_X: there is no such setting"},
		{name: "bad variable", env: "BLINDPOST_MAILBOX_CAP=x", want: `BLINDPOST_MAILBOX_CAP "x": it must be a whole number`},

		{name: "no such file", args: "--config=/does/not/exist", want: "/does/not/exist"},
		{name: "unknown key", file: "mailbox_cap: 1", want: `blindpost.yaml:1: mailbox_cap: there is no such setting; the nearest is mailbox-cap`},
		{name: "name of a variable as key", file: "BLINDPOST_MAILBOX_CAP: 1", want: `blindpost.yaml:1: BLINDPOST_MAILBOX_CAP: there is no such setting`},
		{name: "file names a file", file: "config: other.yaml", want: `blindpost.yaml:1: config: a settings file cannot name another`},
		{name: "bad value", file: "listen: :1\n\nmailbox-cap: 1.5", want: `blindpost.yaml:3: mailbox-cap "1.5": it must be a whole number`},
		{name: "no value", file: "mailbox-cap:", want: `blindpost.yaml:1: mailbox-cap: it has no value`},
		{name: "two values", file: "mailbox-cap: [1, 2]", want: `mailbox-cap: it takes one value`},
		{name: "map", file: "limits:\n  mailbox-cap: 1", want: `blindpost.yaml:1: limits: there is no such setting`},
		{name: "map as value", file: "mailbox-cap: {a: 1}", want: `mailbox-cap: it must be one value`},
		{name: "key twice", file: "mailbox-cap: 1\nmailbox-cap: 2", want: "blindpost.yaml:2: mailbox-cap: it is set already, in line 1"},
		{name: "no map", file: "- a", want: "blindpost.yaml:1: settings file must be lines"},
		{name: "no YAML", file: "a: [", want: "blindpost.yaml:2: settings file is no YAML: did not find"},
		{name: "no YAML, no line", file: "a: \x01", want: "blindpost.yaml: settings file is no YAML: yaml: control characters"},
		{name: "two documents", file: "mailbox-cap: 1\n---\nmailbox-cap: many", want: "blindpost.yaml:2: a second document begins here"},
		{name: "no YAML behind a document", file: "mailbox-cap: 1\n---\na: @", want: "blindpost.yaml:3: settings file is no YAML"},
		{name: "key of the stack", file: "edge: true", want: "blindpost.yaml:1: edge: it means nothing here: it is read by stack"},
		{name: "variable of the functions", env: "BLINDPOST_CONN_RECORD_TTL=3h", want: "BLINDPOST_CONN_RECORD_TTL: it means nothing here: it is read by connect, message, sweeper, stack"},
		{name: "too large", file: "# " + strings.Repeat("x", 1<<20), want: "larger than"},

		{name: "listen", args: "--listen=8443", want: `--listen "8443": it must be an address such as :8443`},
		{name: "port", args: "--listen=:99999", want: `--listen ":99999"`},
		{name: "metrics-listen", args: "--metrics-listen=x", want: "--metrics-listen"},
		{name: "same address", args: "--listen=:1 --metrics-listen=:1", want: `--metrics-listen ":1": it is the same address as listen`},
		{name: "profiles without an address", args: "--pprof --metrics-listen=off", want: `--pprof "true": profiles are served on metrics-listen, which is off`},
		{name: "bad bool", file: "pprof: yes please", want: `pprof "yes please": it must be true or false`},
		{name: "no data folder", args: "--data-dir=", want: `--data-dir "": it must be the name of a folder`},
		{name: "log format", args: "--log-format=xml", want: `--log-format "xml": it must be text or json`},
		{name: "certificate alone", args: "--tls-cert=c", want: `--tls-cert "c": it needs tls-key`},
		{name: "key alone", args: "--tls-key=k", want: `--tls-key "k": it needs tls-cert`},
		{name: "two sources", args: "--tls-cert=c --tls-key=k --acme-domain=a.example.org", want: `--acme-domain "a.example.org": it excludes tls-cert`},
		{name: "ACME for an address", args: "--acme-domain=192.0.2.1", want: `--acme-domain "192.0.2.1": it must be host names such as relay.example.org, neither addresses`},
		{name: "ACME for a wildcard", args: "--acme-domain=*.example.org", want: "acme-domain"},
		{name: "ACME for a URL", args: "--acme-domain=https://example.org", want: "acme-domain"},
		{name: "ACME for localhost", args: "--acme-domain=localhost", want: "acme-domain"},
		{name: "ACME for dots", args: "--acme-domain=a..b", want: "acme-domain"},
		{name: "e-mail without ACME", args: "--acme-email=me@example.org", want: `--acme-email "me@example.org": it needs acme-domain`},
		{name: "message-ttl 0", args: "--message-ttl=0s", want: `--message-ttl "0s": it must be from 1ms to 36500d`},
		{name: "message-ttl for ever", args: "--message-ttl=1000000h", want: `--message-ttl "1000000h": it must be from 1ms to 36500d`},
		{name: "message-ttl that no time.Duration holds", args: "--message-ttl=400000d", want: `168h or 7d, from 1ms to 36500d`},
		{name: "small frame", args: "--max-frame=1KiB", want: `--max-frame "1KiB": it must be from 4KiB to 392KiB`},
		{name: "frame that no item holds", args: "--max-frame=400KiB", want: `--max-frame "400KiB": it must be from 4KiB to 392KiB`},
		{name: "live below stored", args: "--max-live-frame=32KiB", want: "max-live-frame"},
		{name: "buffer below frame", args: "--send-buffer=256KiB", want: `--send-buffer "256KiB": it is smaller than max-live-frame`},
		{name: "slow pings", args: "--ping-interval=2m", want: "ping-interval"},
		{name: "pairing default above most", args: "--pairing-ttl=11m", want: `--pairing-ttl "11m": it is longer than pairing-ttl-max`},
		{name: "pairing in parts of seconds", args: "--pairing-ttl=1500ms", want: `--pairing-ttl "1500ms": it must be whole seconds`},
		{name: "zero timeouts", args: "--write-timeout=0s", want: `--write-timeout "0s": it must be from 1ms`},
		{name: "long title", args: "--push-title=" + strings.Repeat("t", 257), want: "--push-title"},
		{name: "flag without a value", args: "--listen", want: "--listen: it needs a value"},
		{name: "no claim", args: "--aelos-controller=ctl", want: `--aelos-controller "ctl": "ctl" is not a claim and a value`},
		{name: "a claim of the protocol", args: "--aelos-controller=role=viewer", want: `--aelos-controller "role=viewer": claim "role" has`},
		{name: "Aelos path without a secret", args: "--aelos-path=/relay", want: `--aelos-path "/relay": it means nothing without aelos-secret-file`},
		{name: "Aelos controller without a secret", args: "--aelos-controller=a=b", want: `--aelos-controller "a=b": it means nothing without aelos-secret-file`},
		{name: "Aelos path of another protocol", args: "--aelos-secret-file=s --aelos-path=/v1/ws", want: `--aelos-path "/v1/ws": "/v1/ws" belongs to the relay`},
		{name: "Aelos path with a query", args: "--aelos-secret-file=s --aelos-path=/a?b", want: `--aelos-path "/a?b": it must be a path`},
		{name: "no viewers", args: "--aelos-max-viewers=0", want: `--aelos-max-viewers "0": it must be from 1 to 1000`},
		{name: "small Aelos frame", args: "--aelos-max-frame=1KiB", want: `--aelos-max-frame "1KiB": it must be from 2KiB to 1MiB`},
		{name: "no time for hello", args: "--aelos-hello-timeout=0s", want: "--aelos-hello-timeout"},
		{name: "a demand that there is not", args: "--agentknock-attestation=on", want: `--agentknock-attestation "on": it must be off, check or require`},
		{name: "attestation without roots", args: "--agentknock-attestation=check", want: `--agentknock-attestation "check": it needs a file with the roots`},
		{name: "demand without roots", args: "--agentknock-attestation=require", want: `--agentknock-attestation "require": it needs a file with the roots`},
		{name: "unused roots", args: "--agentknock-attestation-roots=r.pem", want: `agentknock-attestation: roots are named`},
		{name: "a pasted secret", args: "--lambda=http://127.0.0.1:1 --callback-secret-arn=s3cr3t", want: "--callback-secret-arn: it must be the ARN of a secret, not the secret itself"},
		{name: "spread", args: "--shutdown-spread=2h", want: `--shutdown-spread "2h": it must be from 0s to 1h`},
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
			if !reflect.DeepEqual(s, settings.Values{}) {
				t.Errorf("settings come with the error: %+v", s)
			}
		})
	}
}

func TestAllThatIsWrongIsSaid(t *testing.T) {
	t.Setenv("BLINDPOST_MAILBOX_CAP", "many")
	_, err := parse(t, "mailbox-cup: 1", "--listen=x", "--message-ttl=0s", "--data-dir=")
	for _, want := range []string{"--listen", "--message-ttl", "--data-dir", "BLINDPOST_MAILBOX_CAP", "blindpost.yaml:1: mailbox-cup"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %q, want %q in it", err, want)
		}
	}
}

func FuzzSettingsFile(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("mailbox-cap: 1\nlisten: [a"))
	f.Add([]byte("a: &a [*a, {b: !!binary xx}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v := settings.For(settings.Binary, settings.Line)
		if err := setFile(v, "f", data); err == nil {
			_ = checkSettings(v)
		}
	})
}
