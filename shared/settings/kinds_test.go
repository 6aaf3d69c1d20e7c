package settings

import (
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration // negative: refused
	}{
		{"7d", 7 * 24 * time.Hour},
		{"1d12h30m", 36*time.Hour + 30*time.Minute},
		{"0d", 0},
		{"168h", 7 * 24 * time.Hour},
		{"90s", 90 * time.Second},
		{"106751d", 106751 * 24 * time.Hour},
		{"106751d23h47m", 106751*24*time.Hour + 23*time.Hour + 47*time.Minute},
		{"106752d", -1},     // more than a time.Duration holds
		{"106751d24h", -1},  //
		{"-1d", -1},         //
		{"1d-1h", -1},       //
		{"1.5d", -1},        //
		{"d", -1},           //
		{"1d1d", -1},        //
		{"12h1d", -1},       //
		{"7", -1},           // no unit
		{"", -1},            //
		{"4294967296d", -1}, //
	} {
		got, ok := readDuration(c.text)
		if c.want < 0 {
			if ok {
				t.Errorf("%q is taken for %v", c.text, got)
			}
			continue
		}
		if !ok || got != c.want {
			t.Errorf("%q: got %v, %v, want %v", c.text, got, ok, c.want)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		name      string
		read      func(string) bool
		good, bad []string
	}{
		{"size", reads(size), []string{"0", "65536", "64KiB", "4 MiB", "1GiB"}, []string{"", "64KB", "-1", "1.5MiB", "9999999999GiB", "9223372036854775807KiB"}},
		{"level", reads(level), []string{"debug", "INFO", "warn", "error"}, []string{"", "loud", "info+1", "error-4"}},
		{"listener", reads(listener), []string{":8443", "127.0.0.1:0", "[::1]:65535"}, []string{"", "8443", ":65536", "a:b"}},
		{"off", reads(off), []string{"off", "", ":1"}, []string{"on", "1"}},
		{"domain", reads(domain), []string{"relay.example.org", "A.example", "xn--bcher-kva.example"}, []string{"", "localhost", "192.0.2.1", "*.example.org", "a..b", "-a.example", "https://example.org"}},
		{"networks", reads(networks), []string{"", "10.0.0.0/8, ::1", "::ffff:10.0.0.1"}, []string{"10.0.0.0/33", "fe80::1%eth0", "a"}},
		{"endpoint", reads(endpoint), []string{"https://a.example", "http://127.0.0.1:1/x"}, []string{"", "https://a.example/", "wss://a.example", "https://u@a.example", "https://a.example?b", "https://"}},
		{"fifo", reads(fifo), []string{"https://sqs.example/0/q.fifo"}, []string{"https://sqs.example/0/q", "arn:aws:sqs:x.fifo"}},
		{"standard", reads(standard), []string{"https://sqs.example/0/q"}, []string{"https://sqs.example/0/q.fifo"}},
		{"header", reads(header), []string{"X-Origin-Secret"}, []string{"", "a_b", "x-forwarded-for"}},
		{"path", reads(path), []string{"/v1/ws"}, []string{"", "/", "v1", "/a?b", "/*", "/a/"}},
		{"line", reads(line), []string{"a b"}, []string{"", "a\nb"}},
		{"pushed", reads(pushed), []string{"", "a b"}, []string{"a\nb", "\xff"}},
		{"secret", reads(secretARN), []string{"arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-AbCdEf"}, []string{"", "swordfish"}},
	} {
		for _, s := range tt.good {
			if !tt.read(s) {
				t.Errorf("%s: %q is refused", tt.name, s)
			}
		}
		for _, s := range tt.bad {
			if tt.read(s) {
				t.Errorf("%s: %q is taken", tt.name, s)
			}
		}
	}
}

func reads[T any](k kind[T]) func(string) bool {
	return func(s string) bool { _, ok := k.read(s); return ok }
}
