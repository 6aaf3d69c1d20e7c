//go:build cdk

package main

import (
	"maps"
	"os"
	"strings"
	"testing"
)

func TestNobodyHasToSetAnything(t *testing.T) {
	for _, context := range []any{nil, map[string]any{}, map[string]any{"edge": true, "@aws-cdk/x:y": 1.0, "blindpost:domain": ""}} {
		s, err := readContext(context)
		if err != nil {
			t.Fatal(err)
		}
		if s.stackName != "Blindpost" || s.edge || s.domain != "" || !s.deletionProtection || !s.pointInTimeRecovery || !s.alarms || !s.dashboard ||
			s.throttleRate != 500 || len(s.limits)+len(s.reserved)+len(s.maxConcurrency) != 0 || s.logRetention != retentions["14"] {
			t.Errorf("the defaults are %+v", s)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	const cert = "arn:aws:acm:us-east-1:123456789012:certificate/a"
	for _, tt := range []struct {
		name    string
		context map[string]any
		want    string
	}{
		{"typing mistake", map[string]any{"blindpost:deletion-protecton": false}, "blindpost:deletion-protecton: there is no such setting"},
		{"list", map[string]any{"blindpost:domain": []any{"a.example"}}, "blindpost:domain: it must be text"},
		{"no boolean", map[string]any{"blindpost:edge": "maybe"}, `blindpost:edge: "maybe" is neither true nor false`},
		{"no number", map[string]any{"blindpost:throttle-rate": "1.5"}, "is not a whole number from 1 to 10000"},
		{"zero", map[string]any{"blindpost:reserved-message": 0.0}, "is not a whole number from 1"},
		{"concurrency of one", map[string]any{"blindpost:max-concurrency-message": 1.0}, "from 2 to 1000"},
		{"days that CloudWatch lacks", map[string]any{"blindpost:log-retention-days": 15.0}, "is none of 1, 3, 5"},
		{"log level", map[string]any{"blindpost:log-level": "trace"}, "is no log level"},
		{"URL for a domain", map[string]any{"blindpost:domain": "https://relay.example.org"}, "is no host name"},
		{"domain without certificate", map[string]any{"blindpost:domain": "relay.example.org"}, "needs a blindpost:certificate-arn"},
		{"certificate of the wrong region", map[string]any{"blindpost:domain": "r.example.org", "blindpost:edge": true, "blindpost:certificate-arn": strings.Replace(cert, "us-east-1", "eu-west-1", 1)}, "of us-east-1"},
		{"edge, zone, no certificate", map[string]any{"blindpost:domain": "r.example.org", "blindpost:edge": true, "blindpost:hosted-zone-id": "Z1", "blindpost:hosted-zone-name": "example.org"}, "of us-east-1"},
		{"certificate without domain", map[string]any{"blindpost:certificate-arn": cert}, "of no use without blindpost:domain"},
		{"half a zone", map[string]any{"blindpost:domain": "r.example.org", "blindpost:certificate-arn": cert, "blindpost:hosted-zone-id": "Z1"}, "belong together"},
		{"another zone", map[string]any{"blindpost:domain": "r.example.org", "blindpost:hosted-zone-id": "Z1", "blindpost:hosted-zone-name": "ample.org"}, "is not in blindpost:hosted-zone-name"},
		{"iOS by Android", map[string]any{"blindpost:sns-ios-arn": "arn:aws:sns:eu-central-1:123456789012:app/GCM/skald"}, "is no ARN of a platform application for APNS"},
		{"wildcard", map[string]any{"blindpost:sns-ios-arn": "arn:aws:sns:eu-central-1:123456789012:app/APNS/*"}, "is no ARN of a platform application for APNS"},
		{"size", map[string]any{"blindpost:max-frame": "64KB"}, "is no size"},
		{"time without unit", map[string]any{"blindpost:message-ttl": "168"}, "is no time"},
		{"negative", map[string]any{"blindpost:mailbox-cap": -1.0}, "is no whole number"},
		{"line break", map[string]any{"blindpost:push-title": "a\nb"}, "is no line"},
		{"two ways to tell", map[string]any{"blindpost:alarm-email": "a@b", "blindpost:alarm-topic-arn": "arn:aws:sns:eu-central-1:123456789012:t"}, "exclude each other"},
		{"mail without alarms", map[string]any{"blindpost:alarm-email": "a@b", "blindpost:alarms": false}, "of no use without blindpost:alarms"},
		{"path with a query", map[string]any{"blindpost:default-path": "/v1?x"}, "is no path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := readContext(tt.context); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestEverythingIsEverything(t *testing.T) {
	left := maps.Clone(everything)
	for _, k := range append(names(), "") {
		delete(left, contextPrefix+k)
	}
	delete(left, "@aws-cdk/some:flag")
	if len(left) != 0 {
		t.Errorf("unknown: %v", left)
	}
	for _, k := range names() {
		if _, ok := everything[contextPrefix+k]; !ok && k != "alarm-topic-arn" {
			t.Errorf("no test sets %s", k)
		}
	}
}

func names() []string {
	var all []string
	for _, k := range contextKeys {
		all = append(all, k.name)
	}
	for _, l := range limits {
		all = append(all, l.name)
	}
	return all
}

// README.md has a row for each setting, with its default, and no row for others.
func TestSettingsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, line := range strings.Split(string(b), "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.HasPrefix(cells[1], " `") {
			for _, name := range strings.Split(strings.Trim(cells[1], " `"), "`, `") {
				rows[name] = strings.Trim(cells[2], " `")
			}
		}
	}
	for _, k := range contextKeys {
		if def, ok := rows[k.name]; !ok || def != k.def {
			t.Errorf("README.md says %q (%v) for the default of %s, which is %q", def, ok, k.name, k.def)
		}
		delete(rows, k.name)
	}
	for _, l := range limits {
		if _, ok := rows[l.name]; !ok {
			t.Errorf("README.md does not know %s", l.name)
		}
		delete(rows, l.name)
	}
	for name := range rows {
		t.Errorf("README.md knows a %s", name)
	}
}
