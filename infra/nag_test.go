//go:build cdk

package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// fronts are the ways to reach the relay, each with something that can be found.
var fronts = map[string]map[string]any{
	"plain":      nil,
	"everything": everything,
	"edge":       {"blindpost:edge": true},
	"no log":     {"blindpost:edge": true, "blindpost:access-log": false, "blindpost:alarms": "all"},
	"domain": {
		"blindpost:domain": "relay.example.org", "blindpost:hosted-zone-id": "Z0123456789", "blindpost:hosted-zone-name": "example.org",
		"blindpost:alarm-topic-arn": "arn:aws:sns:eu-central-1:123456789012:alarms", "blindpost:dashboard": false,
		"blindpost:sns-android-arn": "arn:aws:sns:eu-central-1:123456789012:app/GCM/skald",
	},
	"binary": {
		"blindpost:edge": true, "blindpost:binary-front": true, "blindpost:binary-paths": "all", "blindpost:binary-domain": "frames.example.org",
		"blindpost:hosted-zone-id": "Z0123456789", "blindpost:hosted-zone-name": "example.org",
	},
	"elsewhere": {"blindpost:fronts": "https://frames.example.org", "blindpost:aelos-secret-arn": aelosSecret},
	"boats":     {"blindpost:edge": true, "blindpost:aelos-secret-arn": aelosSecret},
	"restored":  {"blindpost:table-name": "Blindpost-Restored"},
	"small":     {"blindpost:alarms": "none", "blindpost:dashboard": "false", "blindpost:access-log": "false"},
}

func TestNagFindsNothing(t *testing.T) {
	for name, context := range fronts {
		for _, f := range synth(t, name, context).findings {
			t.Errorf("%s: %s", name, f)
		}
	}
}

// The test above proves something only if something would be found.
func TestNagFinds(t *testing.T) {
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir())})
	stack := awscdk.NewStack(app, jsii.String("S"), nil)
	awssqs.NewQueue(stack, jsii.String("Q"), nil)
	awscdk.Aspects_Of(app).Add(nagChecks(), nil)
	if f := findings(stack); !strings.Contains(strings.Join(f, "\n"), "AwsSolutions-SQS4") {
		t.Errorf("a queue that takes plain HTTP is not found: %v", f)
	}
}

func TestEachSuppressionHasItsReason(t *testing.T) {
	for name, context := range fronts {
		tm := synth(t, name, context).template
		if strings.Count(tm.text, `"rules_to_suppress"`) == 0 {
			t.Errorf("%s: no suppression was found", name)
		}
		for id, r := range tm.resources {
			for _, rule := range r.Metadata.Nag.Rules {
				if len(rule.Reason) < 20 {
					t.Errorf("%s: %s: %s is suppressed because: %q", name, id, rule.ID, rule.Reason)
				}
				if strings.Contains(rule.ID, "IAM") && len(rule.AppliesTo) == 0 {
					t.Errorf("%s: %s: %s is suppressed for good, not for one finding", name, id, rule.ID)
				}
			}
		}
	}
}
