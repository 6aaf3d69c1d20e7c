//go:build cdk

package main

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// A caller is a service of AWS, or a role of this account, with what a request says of
// itself.
type caller struct {
	service string // "" is a role
	account string
	source  string // the ARN of what the service acts for
	plain   bool   // by HTTP without TLS
}

const account = "${AWS::AccountId}"

// verdict is what policies say to a request: whether one denies it, one allows it.
type verdict struct{ denied, allowed bool }

// asked reads the statements of a resource's policy, as IAM does.
func asked(t *testing.T, statements []any, who caller, action, resource string) (v verdict) {
	t.Helper()
	for _, s := range statements {
		st := s.(map[string]any)
		if st["NotAction"] != nil || st["NotResource"] != nil || st["NotPrincipal"] != nil {
			t.Fatalf("a statement says what it is not about: %v", st)
		}
		if !principal(st["Principal"], who) || !oneOf(st["Action"], action) || !oneOf(st["Resource"], resource) || !conditions(t, st["Condition"], who) {
			continue
		}
		if st["Effect"] == "Deny" {
			v.denied = true
		} else {
			v.allowed = true
		}
	}
	return v
}

func principal(p any, who caller) bool {
	if p == nil || p == "*" {
		return true
	}
	for kind, names := range p.(map[string]any) {
		for _, n := range list(names) {
			switch name := flat(n); {
			case name == "*":
				return true
			case kind == "Service" && name == who.service:
				return true
			case kind == "AWS" && who.service == "" && strings.Contains(name, ":"+who.account+":root"):
				return true
			}
		}
	}
	return false
}

// oneOf matches one of several patterns.
func oneOf(patterns any, value string) bool {
	return slices.ContainsFunc(list(patterns), func(p any) bool { return matches(flat(p), value) })
}

// matches is how IAM matches: a star is anything, slashes included.
func matches(pattern, value string) bool {
	plain := strings.NewReplacer("/", "\x00", `[`, "\x01", `]`, "\x02", `\`, "\x03")
	ok, err := path.Match(plain.Replace(pattern), plain.Replace(value))
	return err == nil && ok
}

func conditions(t *testing.T, c any, who caller) bool {
	t.Helper()
	if c == nil {
		return true
	}
	secure := "true"
	if who.plain {
		secure = "false"
	}
	has := map[string]string{"aws:SecureTransport": secure, "aws:SourceArn": who.source}
	if who.service != "" {
		has["aws:SourceAccount"] = who.account
	}
	for operator, keys := range c.(map[string]any) {
		for key, want := range keys.(map[string]any) {
			value, known := has[key]
			if !known && key != "aws:SourceAccount" {
				t.Fatalf("this test does not know %s", key)
			}
			switch operator {
			case "Bool", "StringEquals", "ArnEquals":
				if !slices.ContainsFunc(list(want), func(w any) bool { return flat(w) == value }) {
					return false
				}
			case "StringLike", "ArnLike":
				if !oneOf(want, value) {
					return false
				}
			default:
				t.Fatalf("this test does not know %s", operator)
			}
		}
	}
	return true
}

// policyOf is the policy of a topic or a queue, if it has one of its own.
func policyOf(tm *template, kind, property, reference string) (statements []any, own bool) {
	for _, p := range tm.ofType(kind) {
		for _, of := range list(p.value(property)) {
			if flat(of) == reference {
				statements, own = append(statements, list(p.value("PolicyDocument.Statement"))...), true
			}
		}
	}
	return statements, own
}

// CloudWatch publishes to the topic of each alarm; without a policy of its own a topic
// lets the whole account do so, with one only whom that names.
func TestAlarmsReachTheirTopic(t *testing.T) {
	told := 0
	for name, context := range fronts {
		tm := synth(t, name, context).template
		for id, alarm := range tm.ofType("AWS::CloudWatch::Alarm") {
			for _, actions := range []string{"AlarmActions", "OKActions", "InsufficientDataActions"} {
				for _, action := range list(alarm.value(actions)) {
					topic := flat(action)
					if !strings.HasPrefix(topic, "${") {
						continue // no topic, or one that is not ours
					}
					told++
					publishes(t, tm, name, id, topic)
				}
			}
		}
	}
	if told == 0 {
		t.Error("no alarm has a topic")
	}
}

func publishes(t *testing.T, tm *template, name, id, topic string) {
	t.Helper()
	statements, own := policyOf(tm, "AWS::SNS::TopicPolicy", "Topics", topic)
	if key := tm.get(t, strings.Trim(topic, "${}"), "AWS::SNS::Topic").at("KmsMasterKeyId"); key != "" {
		t.Errorf("%s: may CloudWatch use the key %s of %s?", name, key, topic)
	}
	cloudwatch := caller{service: "cloudwatch.amazonaws.com", account: account, source: "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:" + account + ":alarm:" + id}
	ask := func(who caller) verdict { return asked(t, statements, who, "sns:Publish", topic) }
	if v := ask(cloudwatch); v.denied || own && !v.allowed {
		t.Errorf("%s: %s may not publish to %s", name, id, topic)
	}
	for what, who := range map[string]caller{
		"an alarm of another account": {service: "cloudwatch.amazonaws.com", account: "999999999999", source: "arn:aws:cloudwatch:eu-central-1:999999999999:alarm:x"},
		"another service":             {service: "s3.amazonaws.com", account: account},
		"another account":             {account: "999999999999"},
	} {
		if v := ask(who); v.allowed && !v.denied {
			t.Errorf("%s: %s may publish to %s", name, what, topic)
		}
	}
	plain := cloudwatch
	plain.plain = true
	if v := ask(plain); own && v.allowed && !v.denied {
		t.Errorf("%s: %s takes plain HTTP", name, topic)
	}
}

// What a role may do with a queue, the policy of the queue does not take away; and the services
// that read or write for the stack have roles that may: API Gateway for frames, Lambda for
// the functions that queues call.
func TestQueuesAreOpenToTheirUsers(t *testing.T) {
	for name, context := range fronts {
		tm := synth(t, name, context).template
		for id := range tm.ofType("AWS::SQS::Queue") {
			queue := tm.get(t, id, "AWS::SQS::Queue")
			if key := queue.at("KmsMasterKeyId"); key != "" {
				t.Errorf("%s: who may use the key %s of %s?", name, key, id)
			}
			if queue.at("RedriveAllowPolicy") != "" {
				t.Errorf("%s: may the queue before %s move letters there?", name, id)
			}
		}
		for id, role := range tm.ofType("AWS::IAM::Role") {
			for _, line := range allowed(t, role) {
				action, queue, _ := strings.Cut(line, " ")
				if !strings.HasPrefix(action, "sqs:") {
					continue
				}
				statements, _ := policyOf(tm, "AWS::SQS::QueuePolicy", "Queues", strings.TrimSuffix(queue, ".Arn}")+"}")
				if statements == nil {
					t.Errorf("%s: %s has no policy that refuses plain HTTP", name, queue)
				}
				if asked(t, statements, caller{account: account}, action, queue).denied {
					t.Errorf("%s: %s may %s, and the queue says no", name, id, line)
				}
			}
		}
		for id, source := range tm.ofType("AWS::Lambda::EventSourceMapping") {
			function := tm.get(t, strings.Trim(source.at("FunctionName"), "${}"), "AWS::Lambda::Function")
			mayAll(t, tm, name+": "+id, function.at("Role"), "lambda.amazonaws.com", source.at("EventSourceArn"), receive)
		}
		for id, integration := range tm.ofType("AWS::ApiGatewayV2::Integration") {
			if integration.at("IntegrationType") != "AWS" {
				continue
			}
			uri := integration.at("IntegrationUri")
			queue := strings.TrimSuffix(uri[strings.LastIndex(uri, "/")+1:], ".QueueName}") + ".Arn}"
			mayAll(t, tm, name+": "+id, integration.at("CredentialsArn"), "apigateway.amazonaws.com", queue, []string{"sqs:SendMessage"})
		}
	}
}

// mayAll expects that a service may take on a role, and that the role may do all that.
func mayAll(t *testing.T, tm *template, what, roleARN, service, resource string, actions []string) {
	t.Helper()
	role := tm.get(t, strings.TrimSuffix(strings.TrimPrefix(roleARN, "${"), ".Arn}"), "AWS::IAM::Role")
	if v := asked(t, list(role.value("AssumeRolePolicyDocument.Statement")), caller{service: service, account: account}, "sts:AssumeRole", ""); v.denied || !v.allowed {
		t.Errorf("%s: %s may not take on its role", what, service)
	}
	lines := allowed(t, role)
	for _, action := range actions {
		if !slices.Contains(lines, action+" "+resource) {
			t.Errorf("%s: its role may not %s %s", what, action, resource)
		}
	}
}

// Each caller of a function has a permission for it: each route of an API, the clock.
func TestFunctionsAreOpenToTheirCallers(t *testing.T) {
	for name, context := range fronts {
		tm := synth(t, name, context).template
		var permissions []any
		for _, p := range tm.ofType("AWS::Lambda::Permission") {
			statement := map[string]any{
				"Effect": "Allow", "Principal": map[string]any{"Service": p.at("Principal")}, "Action": p.at("Action"), "Resource": p.at("FunctionName"),
			}
			if source := p.at("SourceArn"); source != "" {
				statement["Condition"] = map[string]any{"ArnLike": map[string]any{"aws:SourceArn": source}}
			}
			permissions = append(permissions, statement)
		}
		calls := func(what, service, source, function string) {
			t.Helper()
			who := caller{service: service, account: account, source: source}
			if v := asked(t, permissions, who, "lambda:InvokeFunction", function); v.denied || !v.allowed {
				t.Errorf("%s: %s may not call %s", name, what, function)
			}
			who.source = "arn:aws:another:source"
			if asked(t, permissions, who, "lambda:InvokeFunction", function).allowed {
				t.Errorf("%s: %s may call %s for any source", name, service, function)
			}
		}
		for id, route := range tm.ofType("AWS::ApiGatewayV2::Route") {
			integration := tm.get(t, strings.Trim(strings.TrimPrefix(route.at("Target"), "integrations/"), "${}"), "AWS::ApiGatewayV2::Integration")
			if integration.at("IntegrationType") != "AWS_PROXY" {
				continue
			}
			uri := integration.at("IntegrationUri")
			if i := strings.Index(uri, "/functions/"); i >= 0 {
				uri = strings.TrimSuffix(uri[i+len("/functions/"):], "/invocations")
			}
			source := "arn:${AWS::Partition}:execute-api:${AWS::Region}:" + account + ":" + route.at("ApiId") + "/prod/" + strings.ReplaceAll(route.at("RouteKey"), " ", "")
			calls(id, "apigateway.amazonaws.com", source, uri)
		}
		for id, rule := range tm.ofType("AWS::Events::Rule") {
			for _, target := range list(rule.value("Targets")) {
				calls(id, "events.amazonaws.com", "${"+id+".Arn}", flat(target.(map[string]any)["Arn"]))
			}
		}
	}
}

// The tests above look at the policies of topics, queues and functions. A policy of
// anything else is not checked by any test.
func TestNoOtherPolicies(t *testing.T) {
	looked := []string{"AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy", "AWS::Lambda::Permission", "AWS::IAM::Role"}
	for name, context := range fronts {
		for id, r := range synth(t, name, context).template.resources {
			if slices.Contains(looked, r.Type) {
				continue
			}
			if r.Type == "AWS::KMS::Key" || strings.HasSuffix(r.Type, "Policy") && r.Type != "AWS::CloudFront::OriginRequestPolicy" || strings.Contains(flat(r.Properties), `"Principal"`) {
				t.Errorf("%s: %s, a %s, has a policy that no test checks", name, id, r.Type)
			}
		}
	}
}
