//go:build cdk

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// always is what each function needs to start, and what the stack alone knows.
var always = map[string][]string{
	"connect":    {"TABLE=${Table}", "JOBS_QUEUE_URL=${Jobs}", "INGRESS_QUEUE_URL=${Ingress}"},
	"message":    {"TABLE=${Table}", "JOBS_QUEUE_URL=${Jobs}", "INGRESS_QUEUE_URL=${Ingress}", "INGRESS_ATTEMPTS=5"},
	"disconnect": {"INGRESS_QUEUE_URL=${Ingress}"},
	"sweeper":    {"TABLE=${Table}", "JOBS_QUEUE_URL=${Jobs}", "INGRESS_QUEUE_URL=${Ingress}"},
}

const callback = "CALLBACK_URL=https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/prod"

func TestEveryVariable(t *testing.T) {
	limitsSet := []string{
		"MAX_FRAME=32KiB", "MAX_LIVE_FRAME=96KiB", "CHALLENGE_TIMEOUT=31s", "MAILBOX_CAP=201", "MESSAGE_TTL=169h", "NAMESPACE_TTL=0",
		"CONNECTIONS_PER_IP=32", "MESSAGES_PER_MINUTE=61", "CONTROL_FRAMES_PER_MINUTE=62", "PAIRING_TTL=301s", "PAIRING_TTL_MAX=601s", "CONN_RECORD_TTL=2h11m",
	}
	chosen := map[string][]string{
		"connect": append([]string{"ORIGIN_SECRET_ARN=${OriginSecret}", "ORIGIN_SECRET_HEADER=X-Origin-Secret", "PATH_PARAMETER=p", "DEFAULT_PATH=/v2/ws"}, limitsSet...),
		"message": limitsSet,
		"sweeper": append([]string{
			"SNS_IOS_ARN=arn:aws:sns:eu-central-1:123456789012:app/APNS/skald.ios",
			"SNS_ANDROID_ARN=arn:aws:sns:eu-central-1:123456789012:app/GCM/skald", "PUSH_TITLE=Title", "PUSH_BODY=Body",
		}, limitsSet...),
	}
	for _, name := range functionNames {
		want := slices.Concat(always[name], []string{callback})
		same(t, "plain "+name, variables(t, synth(t, "plain", nil).template, name), append(slices.Clone(want), "LOG_LEVEL=info"))
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

// What the functions read is in their source. That source may not know a name
// that the stack can never set, nor the stack one that the functions refuse.
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
	same(t, "variables that the stack sets", set, variablesOfFunctions(t))
}

// variablesOfFunctions reads the list []setting{{"TABLE", ...}, ...} in the
// source: the package itself is internal to functions/.
func variablesOfFunctions(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../functions/internal/wiring/env.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		list, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		array, ok := list.Type.(*ast.ArrayType)
		if !ok {
			return true
		}
		if element, ok := array.Elt.(*ast.Ident); !ok || element.Name != "setting" {
			return true
		}
		for _, e := range list.Elts {
			name, err := strconv.Unquote(e.(*ast.CompositeLit).Elts[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return false
	})
	if len(names) == 0 {
		t.Fatal("the list of settings is not where it was")
	}
	return names
}

func TestNoSecretInClear(t *testing.T) {
	for name, s := range map[string]*synthesis{"plain": synth(t, "plain", nil), "everything": synth(t, "everything", everything)} {
		// The one secret is made by Secrets Manager, and read by CloudFormation for CloudFront alone.
		resolved := regexp.MustCompile(`\{\{resolve:[^}]*`).FindAllString(s.template.text, -1)
		for id, r := range s.template.resources {
			if r.Properties["SecretString"] != nil {
				t.Errorf("%s: %s has its secret in the template", name, id)
			}
			if r.Type != "AWS::CloudFront::Distribution" && strings.Contains(fmt.Sprint(r.Properties), "{{resolve:") {
				t.Errorf("%s: %s gets the value of a secret", name, id)
			}
		}
		want := 0
		if name == "everything" {
			want = 1
			header := s.template.get(t, "Edge", "AWS::CloudFront::Distribution").at("DistributionConfig.Origins.0.OriginCustomHeaders.0.HeaderValue")
			if header != "{{resolve:secretsmanager:${OriginSecret}:SecretString:::}}" {
				t.Errorf("the header is %s", header)
			}
			s.template.get(t, "OriginSecret", "AWS::SecretsManager::Secret").want(t, map[string]string{
				"GenerateSecretString.PasswordLength": "48", "GenerateSecretString.ExcludePunctuation": "true",
			})
		}
		if len(resolved) != want {
			t.Errorf("%s: %d secrets are resolved, want %d: %v", name, len(resolved), want, resolved)
		}
		for id, v := range s.template.outputs {
			if strings.Contains(v, "Secret") {
				t.Errorf("%s: output %s tells %s", name, id, v)
			}
		}
	}
}
