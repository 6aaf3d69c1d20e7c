//go:build cdk

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blindpost/functions"
	declared "blindpost/shared/settings"
)

// always is what each function needs to start, and what the stack alone knows.
var always = map[string][]string{
	"connect":    {"TABLE=${Table}", "JOBS_QUEUE_URL=${Jobs}", "INGRESS_QUEUE_URL=${Ingress}"},
	"message":    {"TABLE=${Table}", "JOBS_QUEUE_URL=${Jobs}", "INGRESS_QUEUE_URL=${Ingress}", "INGRESS_ATTEMPTS=5"},
	"disconnect": {"INGRESS_QUEUE_URL=${Ingress}"},
	"sweeper":    {"TABLE=${Table}", "JOBS_QUEUE_URL=${Jobs}", "INGRESS_QUEUE_URL=${Ingress}"},
}

const callback = "API_CALLBACK_URL=https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/prod"

func TestEveryVariable(t *testing.T) {
	limitsSet := []string{
		"MAX_FRAME=32KiB", "MAX_LIVE_FRAME=96KiB", "CHALLENGE_TIMEOUT=31s", "MAILBOX_CAP=201", "MESSAGE_TTL=169h", "NAMESPACE_TTL=0",
		"CONNECTIONS_PER_IP=32", "MESSAGES_PER_MINUTE=61", "CONTROL_FRAMES_PER_MINUTE=62", "PAIRING_TTL=301s", "PAIRING_TTL_MAX=601s", "CONN_RECORD_TTL=2h11m",
		"AGENTKNOCK_CLIENT_EXCHANGES_PER_MINUTE=21", "AGENTKNOCK_DEVICE_EXCHANGES_PER_MINUTE=22", "AGENTKNOCK_CLIENT_OPEN_EXCHANGES=23", "AGENTKNOCK_DEVICE_OPEN_EXCHANGES=24", "AGENTKNOCK_CLIENT_STORED_BYTES=1MiB", "AGENTKNOCK_DEVICE_STORED_BYTES=2MiB", "AGENTKNOCK_FRAMES_PER_MINUTE=302", "AGENTKNOCK_EXCHANGE_TTL=23h", "AGENTKNOCK_RECOVERY_TTL=25h", "AGENTKNOCK_PAIRING_TTL=26h", "AGENTKNOCK_WAKE_INTERVAL=31s",
		"AELOS_MAX_FRAME=63KiB", "AELOS_MAX_VIEWERS=9", "AELOS_HELLO_TIMEOUT=6s", "AELOS_CLOCK_LEEWAY=7s",
		"AELOS_BOAT_FRAMES_PER_MINUTE=901", "AELOS_VIEWER_FRAMES_PER_MINUTE=902", "AELOS_COMMANDS_PER_MINUTE=31",
		"AELOS_COMMAND_BYTES_PER_MINUTE=128KiB", "AELOS_MAX_HANDSHAKE=2KiB", "AELOS_HANDSHAKES_PER_MINUTE=121",
		"AELOS_MAX_VIEWERS_PER_USER=4", "AELOS_MAX_TOKEN_LIFE=25h",
		"AELOS_SECRET_ARN=" + aelosSecret, "AELOS_PATH=/boats", "AELOS_CONTROLLER=scope=anchor",
		"FRONTS=https://frames.example.org:8443,https://elsewhere.example.org:9443,https://third.example.org", "FRONT_SECRET_ARN=${FrontSecret}",
	}
	chosen := map[string][]string{
		"connect": append([]string{"ORIGIN_SECRET_ARN=${OriginSecret}", "ORIGIN_SECRET_HEADER=X-Origin-Secret", "PATH_PARAMETER=p", "DEFAULT_PATH=/v2/ws",
			"AGENTKNOCK_ATTESTATION=require", "AGENTKNOCK_ATTESTATION_ROOTS=/var/task/attestation-roots.pem"}, limitsSet...),
		"message": limitsSet,
		"sweeper": append([]string{
			"SNS_IOS_ARN=arn:aws:sns:eu-central-1:123456789012:app/APNS/skald.ios",
			"SNS_ANDROID_ARN=arn:aws:sns:eu-central-1:123456789012:app/GCM/skald", "PUSH_TITLE=Title", "PUSH_BODY=Body",
		}, limitsSet...),
	}
	plain := map[string][]string{
		"connect": {"MAX_LIVE_FRAME=96KiB"}, "message": {"MAX_LIVE_FRAME=96KiB"}, "sweeper": {"MAX_LIVE_FRAME=96KiB"},
	}
	for _, name := range functionNames {
		want := slices.Concat(always[name], []string{callback})
		same(t, "plain "+name, variables(t, synth(t, "plain", nil).template, name), slices.Concat(want, plain[name]))
		want = append(slices.Concat(want, chosen[name]), "LOG_LEVEL=debug")
		same(t, "everything "+name, variables(t, synth(t, "everything", everything).template, name), want)
	}
}

// variables are those of one function, without the BLINDPOST_ that all have.
func variables(t *testing.T, tm *template, name string) []string {
	t.Helper()
	var lines []string
	env, _ := tm.get(t, title(name), "AWS::Lambda::Function").value("Environment.Variables").(map[string]any)
	for variable, value := range env {
		short, ok := strings.CutPrefix(variable, "BLINDPOST_")
		if !ok {
			t.Errorf("%s has a variable %s", name, variable)
		}
		lines = append(lines, short+"="+flat(value))
	}
	return lines
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// The functions may not read a name that the stack can never set, nor the stack set
// one that they refuse.
func TestFunctionsAndStackKnowTheSameVariables(t *testing.T) {
	var set []string
	for _, name := range functionNames {
		for _, v := range variables(t, synth(t, "everything", everything).template, name) {
			variable, _, _ := strings.Cut(v, "=")
			if !slices.Contains(set, variable) {
				set = append(set, variable)
			}
		}
	}
	var read []string
	for _, s := range declared.All(declared.Functions) {
		// A secret in a file is for a machine without Secrets Manager.
		if !strings.HasSuffix(s.Name, "-secret-file") {
			read = append(read, strings.TrimPrefix(s.Variable(), declared.Prefix))
		}
	}
	same(t, "variables that the stack sets", set, read)
}

// What the functions are told in the template is what they take at their start, with
// the references resolved: for each way to deploy, and for SAM with sam-env.json.
func TestFunctionsTakeWhatTheyAreTold(t *testing.T) {
	b, err := os.ReadFile("sam-env.json")
	if err != nil {
		t.Fatal(err)
	}
	var sam map[string]map[string]string
	if err := json.Unmarshal(b, &sam); err != nil {
		t.Fatal(err)
	}
	resolved := strings.NewReplacer("${Table}", samples.table, "${Ingress}", samples.ingress, "${Jobs}", samples.jobs,
		"${OriginSecret}", samples.originSecret, "${FrontSecret}", samples.frontSecret,
		"${Api}", "a1b2c3d4e5", "${AWS::Region}", "eu-central-1", "${AWS::URLSuffix}", "amazonaws.com")
	for front, context := range fronts {
		for _, name := range functionNames {
			for _, local := range []bool{false, true} {
				var environ []string
				for _, v := range variables(t, synth(t, front, context).template, name) {
					variable, value, _ := strings.Cut(v, "=")
					value = resolved.Replace(value)
					if replaced, ok := sam[title(name)]["BLINDPOST_"+variable]; ok && local {
						value = replaced
					}
					environ = append(environ, "BLINDPOST_"+variable+"="+value)
				}
				v := declared.For(declared.Functions, declared.Variable)
				if err := errors.Join(v.SetEnviron(environ), functions.Check(v, readers[name])); err != nil {
					t.Errorf("%s, %s, sam %v: %v", front, name, local, err)
				}
			}
		}
	}
}

func TestNoSecretInClear(t *testing.T) {
	// The secret of CloudFront is read by CloudFormation for each of its origins.
	for name, want := range map[string]int{"plain": 0, "edge": 2, "everything": 3} {
		tm := synth(t, name, fronts[name]).template
		for id, r := range tm.resources {
			if r.Properties["SecretString"] != nil {
				t.Errorf("%s: %s has its secret in the template", name, id)
			}
			if r.Type != "AWS::CloudFront::Distribution" && strings.Contains(fmt.Sprint(r.Properties), "{{resolve:") {
				t.Errorf("%s: %s gets the value of a secret", name, id)
			}
			if r.Type == "AWS::SecretsManager::Secret" {
				r.want(t, map[string]string{"GenerateSecretString.PasswordLength": "48", "GenerateSecretString.ExcludePunctuation": "true"})
			}
		}
		resolved := regexp.MustCompile(`\{\{resolve:[^}]*`).FindAllString(tm.text, -1)
		if len(resolved) != want {
			t.Errorf("%s: %d secrets are resolved, want %d: %v", name, len(resolved), want, resolved)
		}
		for i := range want {
			header := tm.get(t, "Edge", "AWS::CloudFront::Distribution").at(fmt.Sprintf("DistributionConfig.Origins.%d.OriginCustomHeaders.0.HeaderValue", i))
			if header != "{{resolve:secretsmanager:${OriginSecret}:SecretString:::}}" {
				t.Errorf("%s: the header is %s", name, header)
			}
		}
		for id, v := range tm.outputs {
			if strings.Contains(v, "Secret") && id != "FrontSecretArn" {
				t.Errorf("%s: output %s tells %s", name, id, v)
			}
		}
	}
}
