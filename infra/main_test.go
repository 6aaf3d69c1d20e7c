//go:build cdk

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

const aelosSecret = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:aelos-AbCdEf"

// everything sets each setting that can be set together with the others. The
// other front, a domain without the edge, has cases of its own.
var everything = map[string]any{
	"blindpost:stack-name":                             "Relay",
	"blindpost:edge":                                   "true",
	"blindpost:default-path":                           "/v2/ws",
	"blindpost:domain":                                 "relay.example.org",
	"blindpost:certificate-arn":                        "arn:aws:acm:us-east-1:123456789012:certificate/0a1b-2c3d",
	"blindpost:hosted-zone-id":                         "Z0123456789",
	"blindpost:hosted-zone-name":                       "example.org",
	"blindpost:deletion-protection":                    false,
	"blindpost:point-in-time-recovery":                 false,
	"blindpost:throttle-rate":                          50.0,
	"blindpost:throttle-burst":                         "60",
	"blindpost:reserved-connect":                       11.0,
	"blindpost:reserved-message":                       12.0,
	"blindpost:reserved-disconnect":                    13.0,
	"blindpost:reserved-sweeper":                       14.0,
	"blindpost:max-concurrency-message":                15.0,
	"blindpost:max-concurrency-sweeper":                16.0,
	"blindpost:log-level":                              "debug",
	"blindpost:log-retention-days":                     30.0,
	"blindpost:access-log":                             true,
	"blindpost:api-logging-role":                       false,
	"blindpost:alarms":                                 "all",
	"blindpost:dashboard":                              true,
	"blindpost:alarm-email":                            "someone@example.org",
	"blindpost:sns-ios-arn":                            "arn:aws:sns:eu-central-1:123456789012:app/APNS/skald.ios",
	"blindpost:sns-android-arn":                        "arn:aws:sns:eu-central-1:123456789012:app/GCM/skald",
	"blindpost:push-title":                             "Title",
	"blindpost:push-body":                              "Body",
	"blindpost:aelos-secret-arn":                       aelosSecret,
	"blindpost:agentknock-client-exchanges-per-minute": "21",
	"blindpost:agentknock-device-exchanges-per-minute": "22",
	"blindpost:agentknock-client-open-exchanges":       "23",
	"blindpost:agentknock-device-open-exchanges":       "24",
	"blindpost:agentknock-client-stored-bytes":         "1MiB",
	"blindpost:agentknock-device-stored-bytes":         "2MiB",
	"blindpost:agentknock-frames-per-minute":           "302",
	"blindpost:agentknock-exchange-ttl":                "23h",
	"blindpost:agentknock-recovery-ttl":                "25h",
	"blindpost:agentknock-pairing-ttl":                 "26h",
	"blindpost:agentknock-wake-interval":               "31s",
	"blindpost:agentknock-attestation":                 "require",
	"blindpost:agentknock-attestation-roots":           "testdata/attestation-roots.pem",
	"blindpost:aelos-path":                             "/boats",
	"blindpost:aelos-controller":                       "scope=anchor",
	"blindpost:aelos-max-frame":                        "63KiB",
	"blindpost:aelos-max-viewers":                      "9",
	"blindpost:aelos-hello-timeout":                    "6s",
	"blindpost:aelos-clock-leeway":                     "7s",
	"blindpost:aelos-boat-frames-per-minute":           "901",
	"blindpost:aelos-viewer-frames-per-minute":         "902",
	"blindpost:aelos-commands-per-minute":              "31",
	"blindpost:aelos-command-bytes-per-minute":         "128KiB",
	"blindpost:aelos-max-handshake":                    "2KiB",
	"blindpost:aelos-handshakes-per-minute":            "121",
	"blindpost:aelos-max-viewers-per-user":             "4",
	"blindpost:aelos-max-token-life":                   "25h",
	"blindpost:fronts":                                 "https://elsewhere.example.org:9443, https://third.example.org",
	"blindpost:binary-front":                           true,
	"blindpost:binary-domain":                          "frames.example.org",
	"blindpost:binary-certificate-arn":                 "arn:aws:acm:eu-central-1:123456789012:certificate/4e5f-6a7b",
	"blindpost:binary-paths":                           "aelos",
	"blindpost:binary-cpu":                             512.0,
	"blindpost:binary-memory":                          1024.0,
	"blindpost:max-frame":                              "32KiB",
	"blindpost:max-live-frame":                         "96KiB",
	"blindpost:challenge-timeout":                      "31s",
	"blindpost:mailbox-cap":                            "201",
	"blindpost:message-ttl":                            "169h",
	"blindpost:namespace-ttl":                          "0",
	"blindpost:connections-per-ip":                     "32",
	"blindpost:messages-per-minute":                    "61",
	"blindpost:control-frames-per-minute":              "62",
	"blindpost:pairing-ttl":                            "301s",
	"blindpost:pairing-ttl-max":                        "601s",
	"blindpost:conn-record-ttl":                        "2h11m",
	"@aws-cdk/some:flag":                               true,
}

// synthesis is one stack, made once for all tests that only look at it.
type synthesis struct {
	template *template
	findings []string
}

var made = map[string]*synthesis{}

func synth(t *testing.T, name string, context map[string]any) *synthesis {
	t.Helper()
	if s, ok := made[name]; ok {
		return s
	}
	all := map[string]any{"aws:cdk:version-reporting": false}
	maps.Copy(all, flagsOfCDK(t))
	maps.Copy(all, context)
	app := awscdk.NewApp(&awscdk.AppProps{Context: &all, Outdir: jsii.String(t.TempDir()), AnalyticsReporting: jsii.Bool(false)})
	s, err := readContext(app.Node().GetAllContext(nil))
	if err != nil {
		t.Fatal(err)
	}
	code := t.TempDir()
	if err := os.WriteFile(filepath.Join(code, "bootstrap"), []byte("not a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := t.TempDir()
	if err := os.WriteFile(filepath.Join(image, "Dockerfile"), dockerfile, 0o644); err != nil {
		t.Fatal(err)
	}
	stack := newStack(app, s, artifacts{func(string) awslambda.Code { return awslambda.Code_FromAsset(&code, nil) }, image})
	awscdk.Aspects_Of(app).Add(nagChecks(), nil)
	b, err := json.Marshal(assertions.Template_FromStack(stack, nil).ToJSON())
	if err != nil {
		t.Fatal(err)
	}
	made[name] = &synthesis{template: parseTemplate(t, b), findings: findings(stack)}
	return made[name]
}

// flagsOfCDK is the context of cdk.json, so that tests see the same stack.
func flagsOfCDK(t *testing.T) map[string]any {
	t.Helper()
	b, err := os.ReadFile("../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Context map[string]any }
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c.Context
}

// findings are the errors and warnings at any construct.
func findings(stack awscdk.Stack) []string {
	annotations := assertions.Annotations_FromStack(stack)
	var all []string
	for _, m := range slices.Concat(
		*annotations.FindError(jsii.String("*"), assertions.Match_AnyValue()),
		*annotations.FindWarning(jsii.String("*"), assertions.Match_AnyValue()),
	) {
		all = append(all, fmt.Sprint(*m.Id, ": ", m.Entry.Data))
	}
	return all
}
