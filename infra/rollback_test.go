//go:build cdk

package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// When the first deployment fails, CloudFormation deletes what it has made so far. What it
// would keep, and what cannot be deleted, is in the way of the next one, or forgotten.
func TestFailedFirstDeploymentLeavesNothing(t *testing.T) {
	for name, context := range fronts {
		for id, r := range synth(t, name, context).template.resources {
			switch r.DeletionPolicy {
			case "", "Delete", "RetainExceptOnCreate":
			default:
				t.Errorf("%s: %s stays when its creation is rolled back: %s", name, id, r.DeletionPolicy)
			}
			if text := flat(r.Properties); protected.MatchString(text) && !strings.HasPrefix(r.Type, "Custom::") {
				t.Errorf("%s: %s is made so that it cannot be deleted: %s", name, id, protected.FindString(text))
			}
		}
	}
}

// protected is how services spell that something cannot be deleted.
var protected = regexp.MustCompile(`(?i)"[a-z]*(deletion|termination)_?-?protect(ion|ed)[a-z]*":\s*("?true|"ENABLED)|"(deletion_protection\.enabled)","Value":"true"`)

func TestProtectedIsFound(t *testing.T) {
	for text, want := range map[string]bool{
		`{"DeletionProtectionEnabled":true}`: true, `{"DeletionProtection":"ENABLED"}`: true, `{"EnableTerminationProtection":true}`: true,
		`{"Key":"deletion_protection.enabled","Value":"true"}`: true,
		`{"DeletionProtectionEnabled":false}`:                  false, `{"Key":"deletion_protection.enabled","Value":"false"}`: false,
	} {
		if protected.MatchString(text) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}

// The table is protected when all else is there, so nothing is left that could fail
// and be rolled back.
func TestProtectionComesLast(t *testing.T) {
	for name, context := range fronts {
		tm := synth(t, name, context).template
		found := tm.ofType("Custom::AWS")
		if on, set := context["blindpost:deletion-protection"].(bool); set && !on {
			if len(found) != 0 {
				t.Errorf("%s: the table was not to be protected", name)
			}
			continue
		}
		if len(found) != 1 {
			t.Fatalf("%s: there are %d calls of AWS, want one that protects the table", name, len(found))
		}
		protect := tm.get(t, "Protect", "Custom::AWS")
		for when, on := range map[string]string{"Create": "true", "Update": "true", "Delete": "false"} {
			call := protect.at(when)
			for _, part := range []string{`"service":"DynamoDB"`, `"action":"updateTable"`, `"TableName":"${Table}"`, `"DeletionProtectionEnabled":` + on} {
				if !strings.Contains(call, part) {
					t.Errorf("%s: on %s there is no %s in %s", name, when, part, call)
				}
			}
		}
		before := needs(t, tm)
		last := longID(t, tm, "Protect")
		for id := range before {
			if id != last && !before[last][id] {
				t.Errorf("%s: %s may be made after the table is protected", name, id)
			}
			if before[id][last] {
				t.Errorf("%s: %s waits for the protection", name, id)
			}
		}
	}
}

// needs is what has to be there before each resource is made, directly or not, by the
// names of the template.
func needs(t *testing.T, tm *template) map[string]map[string]bool {
	t.Helper()
	var raw struct {
		Resources map[string]struct{ Properties, DependsOn any }
	}
	if err := json.Unmarshal([]byte(tm.text), &raw); err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]bool{}
	for id, r := range raw.Resources {
		all[id] = map[string]bool{}
		for _, d := range list(r.DependsOn) {
			if d != nil {
				all[id][d.(string)] = true
			}
		}
		b, err := json.Marshal(r.Properties)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reference.FindAllStringSubmatch(string(b), -1) {
			if _, ok := raw.Resources[m[1]]; ok { // else it is AWS::Region, or a mapping
				all[id][m[1]] = true
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, direct := range all {
			for via := range maps.Clone(direct) {
				for id := range all[via] {
					if !direct[id] {
						direct[id], changed = true, true
					}
				}
			}
		}
	}
	return all
}

var reference = regexp.MustCompile(`(?:"Ref":|"Fn::GetAtt":\[)"([A-Za-z0-9]+)"`)

// What has a name that is given cannot be there twice, and so not be made again where
// it was left behind. CloudFormation invents the others.
func TestNamesAreInvented(t *testing.T) {
	reasons := map[string]string{
		"AWS::ApiGatewayV2::Api Name":                     "not unique",
		"AWS::ApiGatewayV2::Stage StageName":              "within its API",
		"AWS::ApiGatewayV2::DomainName DomainName":        "a setting",
		"AWS::CertificateManager::Certificate DomainName": "a setting",
		"AWS::Route53::RecordSet Name":                    "a setting",
		"AWS::CloudWatch::Alarm MetricName":               "of what it looks at",
		"AWS::ECS::TaskDefinition Family":                 "each is a revision of it",
		"AWS::CloudFront::Function Name":                  "has to be given: region, stack and a hash; it goes with a rollback",
	}
	for name, context := range fronts {
		for id, r := range synth(t, name, context).template.resources {
			for _, property := range slices.Sorted(maps.Keys(r.Properties)) {
				if property != "Name" && property != "Family" && !strings.HasSuffix(property, "Name") {
					continue
				}
				value := r.at(property)
				if whole.MatchString(value) { // of another resource
					continue
				}
				if reasons[r.Type+" "+property] == "" {
					t.Errorf("%s: %s, a %s, has the %s %s", name, id, r.Type, property, value)
				}
			}
		}
	}
}

var whole = regexp.MustCompile(`^\$\{[^}]+\}$`)
