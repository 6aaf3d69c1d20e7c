//go:build cdk

package main

import (
	"maps"
	"strings"
	"testing"

	declared "blindpost/shared/settings"
)

func TestNoSettingIsRequired(t *testing.T) {
	for _, context := range []any{nil, map[string]any{}, map[string]any{"edge": true, "@aws-cdk/x:y": 1.0, "blindpost:domain": ""}} {
		s, err := readContext(context)
		if err != nil {
			t.Fatal(err)
		}
		if s.stackName != "Blindpost" || s.edge || s.binaryFront || s.domain != "" || !s.deletionProtection || !s.pointInTimeRecovery ||
			s.alarms != fewAlarms || !s.dashboard || s.throttleRate != 500 || s.told("message", samples)["max-live-frame"] != "96KiB" || len(s.told("message", addresses{})) != 2 || len(s.reserved)+len(s.maxConcurrency) != 0 || s.logRetention != retentions["14"] {
			t.Errorf("the defaults are %+v", s)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	const cert = "arn:aws:acm:us-east-1:123456789012:certificate/a"
	const roots = "testdata/attestation-roots.pem"
	for _, tt := range []struct {
		name    string
		context map[string]any
		want    string
	}{
		{"typing mistake", map[string]any{"blindpost:deletion-protecton": false}, "blindpost:deletion-protecton: there is no such setting; the nearest is blindpost:deletion-protection"},
		{"list", map[string]any{"blindpost:domain": []any{"a.example"}}, "blindpost:domain: it must be text"},
		{"no boolean", map[string]any{"blindpost:edge": "maybe"}, `blindpost:edge "maybe": it must be true or false`},
		{"no number", map[string]any{"blindpost:throttle-rate": "1.5"}, `blindpost:throttle-rate "1.5": it must be a whole number`},
		{"zero", map[string]any{"blindpost:reserved-message": 0.0}, `blindpost:reserved-message "0": it must be from 1 to 10000`},
		{"concurrency of one", map[string]any{"blindpost:max-concurrency-message": 1.0}, `blindpost:max-concurrency-message "1": it must be from 2 to 1000`},
		{"days that CloudWatch lacks", map[string]any{"blindpost:log-retention-days": 15.0}, "it must be 1, 3, 5"},
		{"log level", map[string]any{"blindpost:log-level": "trace"}, "it must be debug, info, warn or error"},
		{"URL for a domain", map[string]any{"blindpost:domain": "https://relay.example.org"}, "it must be a host name"},
		{"domain without certificate", map[string]any{"blindpost:domain": "relay.example.org"}, "needs a blindpost:certificate-arn"},
		{"certificate of the wrong region", map[string]any{"blindpost:domain": "r.example.org", "blindpost:edge": true, "blindpost:certificate-arn": strings.Replace(cert, "us-east-1", "eu-west-1", 1)}, "of us-east-1"},
		{"edge, zone, no certificate", map[string]any{"blindpost:domain": "r.example.org", "blindpost:edge": true, "blindpost:hosted-zone-id": "Z1", "blindpost:hosted-zone-name": "example.org"}, "of us-east-1"},
		{"certificate without domain", map[string]any{"blindpost:certificate-arn": cert}, "of no use without blindpost:domain"},
		{"half a zone", map[string]any{"blindpost:domain": "r.example.org", "blindpost:certificate-arn": cert, "blindpost:hosted-zone-id": "Z1"}, "belong together"},
		{"another zone", map[string]any{"blindpost:domain": "r.example.org", "blindpost:hosted-zone-id": "Z1", "blindpost:hosted-zone-name": "ample.org"}, "is not in blindpost:hosted-zone-name"},
		{"iOS by Android", map[string]any{"blindpost:sns-ios-arn": "arn:aws:sns:eu-central-1:123456789012:app/GCM/skald"}, "it must be an ARN of a platform application for APNS"},
		{"wildcard", map[string]any{"blindpost:sns-ios-arn": "arn:aws:sns:eu-central-1:123456789012:app/APNS/*"}, "it must be an ARN of a platform application for APNS"},
		{"size", map[string]any{"blindpost:max-frame": "64KB"}, `blindpost:max-frame "64KB": it must be a number of bytes`},
		{"time without unit", map[string]any{"blindpost:message-ttl": "168"}, `blindpost:message-ttl "168": it must be a time with its unit`},
		{"negative", map[string]any{"blindpost:mailbox-cap": -1.0}, `blindpost:mailbox-cap "-1": it must be a whole number`},
		{"frame of no use", map[string]any{"blindpost:max-frame": "1KiB"}, `blindpost:max-frame "1KiB": it must be from 4KiB`},
		{"window that is too long", map[string]any{"blindpost:pairing-ttl": "700s"}, `blindpost:pairing-ttl "700s": it is longer than blindpost:pairing-ttl-max`},
		{"live frame that is too small", map[string]any{"blindpost:max-live-frame": "32KiB"}, `blindpost:max-live-frame "32KiB": it is smaller than blindpost:max-frame`},
		{"record that is too short", map[string]any{"blindpost:conn-record-ttl": "1h"}, `blindpost:conn-record-ttl "1h": it must be from 2h`},
		{"frame beyond API Gateway", map[string]any{"blindpost:max-frame": "100KiB", "blindpost:max-live-frame": "100KiB"}, `blindpost:max-frame "100KiB": API Gateway carries messages of 128 KB, which in base64 is a frame of 98304 bytes (96 KiB)`},
		{"live frame beyond API Gateway", map[string]any{"blindpost:max-live-frame": "98305"}, `blindpost:max-live-frame "98305": API Gateway carries`},
		{"line break", map[string]any{"blindpost:push-title": "a\nb"}, "it must be a line"},
		{"two ways to tell", map[string]any{"blindpost:alarm-email": "a@b", "blindpost:alarm-topic-arn": "arn:aws:sns:eu-central-1:123456789012:t"}, "exclude each other"},
		{"mail without alarms", map[string]any{"blindpost:alarm-email": "a@b", "blindpost:alarms": "none"}, "of no use without blindpost:alarms"},
		{"alarms", map[string]any{"blindpost:alarms": true}, "it must be none, few or all"},
		{"zone without domain", map[string]any{"blindpost:hosted-zone-id": "Z1", "blindpost:hosted-zone-name": "example.org"}, "of no use without blindpost:domain"},
		{"front without TLS", map[string]any{"blindpost:fronts": "http://frames.example.org"}, `blindpost:fronts "http://frames.example.org": callback address is not https`},
		{"Aelos by API Gateway", map[string]any{"blindpost:aelos-secret-arn": aelosSecret}, "binary frames, which API Gateway refuses; or blindpost:edge"},
		{"secret in clear", map[string]any{"blindpost:aelos-secret-arn": "swordfish"}, "blindpost:aelos-secret-arn: it must be the ARN of a secret"},
		{"path of Aelos alone", map[string]any{"blindpost:aelos-path": "/boats"}, "are of no use without blindpost:aelos-secret-arn"},
		{"claim without value", map[string]any{"blindpost:aelos-secret-arn": aelosSecret, "blindpost:fronts": "https://frames.example.org", "blindpost:aelos-controller": "scope"}, `blindpost:aelos-controller "scope": `},
		{"a demand that there is not", map[string]any{"blindpost:agentknock-attestation": "on"}, `blindpost:agentknock-attestation "on": it must be off, check or require`},
		{"attestation where nothing is claimed", map[string]any{"blindpost:agentknock-attestation": "check", "blindpost:agentknock-attestation-roots": roots}, "needs blindpost:edge"},
		{"attestation without roots", map[string]any{"blindpost:edge": true, "blindpost:agentknock-attestation": "require"}, `blindpost:agentknock-attestation "require": it needs a file with the roots`},
		{"unused roots", map[string]any{"blindpost:edge": true, "blindpost:agentknock-attestation-roots": roots}, "blindpost:agentknock-attestation: roots are named"},
		{"no roots there", map[string]any{"blindpost:edge": true, "blindpost:agentknock-attestation": "check", "blindpost:agentknock-attestation-roots": "testdata/none.pem"}, "no such file"},
		{"no roots in it", map[string]any{"blindpost:edge": true, "blindpost:agentknock-attestation": "check", "blindpost:agentknock-attestation-roots": "README.md"}, "there is no certificate"},
		{"binary domain alone", map[string]any{"blindpost:binary-domain": "frames.example.org"}, "of no use without blindpost:binary-front"},
		{"binary front without a name", map[string]any{"blindpost:binary-front": true}, "needs a blindpost:binary-domain"},
		{"binary front without certificate", binary("certificate-arn", ""), "needs a blindpost:binary-certificate-arn"},
		{"binary front in another zone", binary("hosted-zone", "example.com"), "blindpost:binary-domain is not in"},
		{"two fronts of one name", binary("same", "frames.example.org"), "cannot be the same name"},
		{"task that Fargate lacks", binary("memory", 4096.0), "Fargate has no task of 256 and 4096 MB"},
		{"size between", binary("memory", 1536.0), "Fargate has no task of 256 and 1536 MB"},
		{"frame beyond a call", binary("", "5MiB"), "a call of a function carries frames of 4669440 bytes at most"},
		{"paths", binary("paths", "some"), "it must be aelos or all"},
		{"ARN for a table", map[string]any{"blindpost:table-name": "arn:aws:dynamodb:eu-central-1:123456789012:table/t"}, "it must be a name of a table"},
		{"path with a query", map[string]any{"blindpost:default-path": "/v1?x"}, "it must be a path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := readContext(tt.context); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

// binary is a binary front with one thing changed.
func binary(change string, value any) map[string]any {
	c := map[string]any{
		"blindpost:binary-front": true, "blindpost:binary-domain": "frames.example.org",
		"blindpost:binary-certificate-arn": "arn:aws:acm:eu-central-1:123456789012:certificate/a",
	}
	switch change {
	case "":
		c["blindpost:max-live-frame"] = value
	case "same":
		c["blindpost:domain"] = value
		c["blindpost:certificate-arn"] = "arn:aws:acm:us-east-1:123456789012:certificate/a"
	case "hosted-zone":
		c["blindpost:hosted-zone-id"], c["blindpost:hosted-zone-name"] = "Z1", value
	default:
		c["blindpost:binary-"+change] = value
	}
	return c
}

// What only API Gateway cannot carry is fine with a front that can.
func TestLargeFramesWithABinaryFront(t *testing.T) {
	c := binary("paths", "all")
	c["blindpost:max-live-frame"] = "1MiB"
	s, err := readContext(c)
	if err != nil || s.told("message", samples)["max-live-frame"] != "1MiB" {
		t.Errorf("%v, %v", s, err)
	}
	delete(c, "blindpost:max-live-frame")
	if s, err = readContext(c); err != nil || s.told("message", samples)["max-live-frame"] != "" {
		t.Errorf("the functions know the default: %v, %v", s, err)
	}
}

// All that is wrong is said at once, and each thing once.
func TestAllThatIsWrong(t *testing.T) {
	_, err := readContext(map[string]any{"blindpost:pairing-ttl": "700s", "blindpost:alarms": "none", "blindpost:alarm-email": "a@b"})
	if err == nil || strings.Count(err.Error(), "longer than") != 1 || !strings.Contains(err.Error(), "alarm-email") {
		t.Errorf("got %v", err)
	}
}

func TestEverythingIsEverything(t *testing.T) {
	left := maps.Clone(everything)
	delete(left, "@aws-cdk/some:flag")
	for _, k := range declared.All(declared.Stack) {
		key := contextKey(k.Name)
		if _, ok := left[key]; !ok && k.Name != "alarm-topic-arn" && k.Name != "table-name" {
			t.Errorf("no test sets %s", k.Name)
		}
		delete(left, key)
	}
	if len(left) != 0 {
		t.Errorf("unknown: %v", left)
	}
}

// CloudWatch has a name for each time that is declared.
func TestRetentions(t *testing.T) {
	for days := range retentions {
		if _, err := declared.LogRetention.Value(days); err != nil {
			t.Errorf("%s: %v", days, err)
		}
	}
	if n := strings.Count(declared.LogRetention.Want, ",") + 2; n != len(retentions) {
		t.Errorf("%d times for %d names", n, len(retentions))
	}
}
