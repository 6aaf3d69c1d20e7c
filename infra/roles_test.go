//go:build cdk

package main

import (
	"maps"
	"strings"
	"testing"
)

// allowed is all that a role may do, as lines of action and resource.
func allowed(t *testing.T, role resource) []string {
	t.Helper()
	var lines []string
	for _, p := range list(role.value("Policies")) {
		if p == nil {
			continue
		}
		doc := p.(map[string]any)["PolicyDocument"].(map[string]any)
		for _, s := range list(doc["Statement"]) {
			statement := s.(map[string]any)
			if statement["Effect"] != "Allow" || statement["NotAction"] != nil || statement["NotResource"] != nil {
				t.Errorf("unexpected statement %v", statement)
			}
			for _, a := range list(statement["Action"]) {
				for _, r := range list(statement["Resource"]) {
					lines = append(lines, a.(string)+" "+flat(r))
				}
			}
		}
	}
	return lines
}

const (
	connectionsARN = "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/prod/"
	tableARN       = "${Table.Arn}"
	// imagesARN is where the CDK keeps images in an account.
	imagesARN = "arn:${AWS::Partition}:ecr:${AWS::Region}:${AWS::AccountId}:repository/cdk-hnb659fds-container-assets-${AWS::AccountId}-${AWS::Region}"
)

var (
	ownLog = func(id string) string {
		return "logs:CreateLogStream ${" + id + "Log.Arn}|logs:PutLogEvents ${" + id + "Log.Arn}|"
	}
	wholeItem = "dynamodb:GetItem " + tableARN + "|dynamodb:Query " + tableARN + "|dynamodb:PutItem " + tableARN + "|dynamodb:UpdateItem " + tableARN +
		"|dynamodb:DeleteItem " + tableARN + "|dynamodb:ConditionCheckItem " + tableARN + "|"
	both    = "sqs:SendMessage ${Ingress.Arn}|sqs:SendMessage ${Jobs.Arn}|"
	reading = func(q string) string {
		return "sqs:ReceiveMessage ${" + q + ".Arn}|sqs:DeleteMessage ${" + q + ".Arn}|sqs:ChangeMessageVisibility ${" + q + ".Arn}|sqs:GetQueueAttributes ${" + q + ".Arn}|"
	}
	closing = "execute-api:ManageConnections " + connectionsARN + "DELETE/@connections/*|"
	posting = "execute-api:ManageConnections " + connectionsARN + "POST/@connections/*|execute-api:ManageConnections " + connectionsARN + "DELETE/@connections/*|"
	asking  = "execute-api:ManageConnections " + connectionsARN + "GET/@connections/*|"
)

func lineList(s string) []string { return strings.Split(strings.TrimSuffix(s, "|"), "|") }

func TestEveryPermission(t *testing.T) {
	plain := map[string]string{
		"ConnectRole":    ownLog("Connect") + both + wholeItem + closing,
		"MessageRole":    ownLog("Message") + both + wholeItem + posting + asking + reading("Ingress"),
		"DisconnectRole": ownLog("Disconnect") + "sqs:SendMessage ${Ingress.Arn}",
		"SweeperRole":    ownLog("Sweeper") + both + wholeItem + posting + asking + reading("Jobs"),
		"FrameRole":      "sqs:SendMessage ${Ingress.Arn}",
	}
	const sns = "arn:aws:sns:eu-central-1:123456789012:"
	full := maps.Clone(plain) // whose table is not protected
	plain["ProtectRole"] = ownLog("Protect") + "dynamodb:UpdateTable " + tableARN
	const reads = "secretsmanager:GetSecretValue "
	full["ConnectRole"] += reads + "${OriginSecret}|" + reads + "${FrontSecret}"
	full["MessageRole"] += reads + aelosSecret + "|" + reads + "${FrontSecret}"
	full["SweeperRole"] += reads + "${FrontSecret}|"
	full["BinaryRole"] = "lambda:InvokeFunction ${Connect.Arn}|lambda:InvokeFunction ${Message.Arn}|lambda:InvokeFunction ${Disconnect.Arn}|secretsmanager:GetSecretValue ${FrontSecret}"
	full["BinaryStartRole"] = "logs:CreateLogStream ${BinaryLog.Arn}|logs:PutLogEvents ${BinaryLog.Arn}|ecr:GetAuthorizationToken *"
	for _, action := range []string{"BatchCheckLayerAvailability", "BatchGetImage", "GetDownloadUrlForLayer"} {
		full["BinaryStartRole"] += "|ecr:" + action + " " + imagesARN
	}
	full["SweeperRole"] += "sns:CreatePlatformEndpoint " + sns + "app/APNS/skald.ios|sns:CreatePlatformEndpoint " + sns + "app/GCM/skald"
	for _, action := range []string{"Publish", "GetEndpointAttributes", "SetEndpointAttributes", "DeleteEndpoint"} {
		full["SweeperRole"] += "|sns:" + action + " " + sns + "endpoint/APNS/skald.ios/*|sns:" + action + " " + sns + "endpoint/GCM/skald/*"
	}

	check := func(t *testing.T, tm *template, want map[string]string) {
		for id, role := range tm.ofType("AWS::IAM::Role") {
			if id == "ApiLoggingRole" {
				continue
			}
			if _, ok := want[id]; !ok {
				t.Errorf("there is a role %s", id)
			}
			if m := role.value("ManagedPolicyArns"); m != nil {
				t.Errorf("%s has managed policies: %v", id, m)
			}
		}
		for id, lines := range want {
			role := tm.get(t, id, "AWS::IAM::Role")
			same(t, id, allowed(t, role), lineList(lines))
			service := "lambda.amazonaws.com"
			switch id {
			case "FrameRole":
				service = "apigateway.amazonaws.com"
			case "BinaryRole", "BinaryStartRole":
				service = "ecs-tasks.amazonaws.com"
			}
			role.want(t, map[string]string{
				"AssumeRolePolicyDocument.Statement.0.Action":            "sts:AssumeRole",
				"AssumeRolePolicyDocument.Statement.0.Principal.Service": service,
				"AssumeRolePolicyDocument.Statement.1":                   "",
			})
		}
		// Nothing is attached to a role from elsewhere.
		for _, kind := range []string{"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy", "AWS::IAM::User"} {
			for id := range tm.ofType(kind) {
				t.Errorf("there is a %s %s", kind, id)
			}
		}
	}
	t.Run("plain", func(t *testing.T) { check(t, synth(t, "plain", nil).template, plain) })
	t.Run("everything", func(t *testing.T) { check(t, synth(t, "everything", everything).template, full) })
}

func TestWhoMayCallTheFunctions(t *testing.T) {
	tm := synth(t, "edge", fronts["edge"]).template
	var got []string
	for _, p := range tm.ofType("AWS::Lambda::Permission") {
		got = append(got, p.at("Action")+" "+p.at("FunctionName")+" by "+p.at("Principal")+" from "+p.at("SourceArn"))
	}
	const api = " by apigateway.amazonaws.com from arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/*"
	same(t, "permissions", got, []string{
		"lambda:InvokeFunction ${Connect.Arn}" + api + "$connect",
		"lambda:InvokeFunction ${Connect.Arn} by apigateway.amazonaws.com from arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Http}/*/*/*",
		"lambda:InvokeFunction ${Disconnect.Arn}" + api + "$disconnect",
		"lambda:InvokeFunction ${Sweeper.Arn} by events.amazonaws.com from ${Schedule.Arn}",
	})
}

func TestQueuesOpenNothing(t *testing.T) {
	tm := synth(t, "plain", nil).template
	policies := tm.ofType("AWS::SQS::QueuePolicy")
	if len(policies) != 4 {
		t.Errorf("%d queue policies, want one for each of four queues", len(policies))
	}
	for id, p := range policies {
		for _, s := range list(p.value("PolicyDocument.Statement")) {
			statement := s.(map[string]any)
			if statement["Effect"] != "Deny" || flat(statement["Condition"]) != `{"Bool":{"aws:SecureTransport":"false"}}` {
				t.Errorf("%s says %v", id, statement)
			}
		}
	}
}
