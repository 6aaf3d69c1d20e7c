//go:build cdk

package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/table/dynamo/layout"
)

func TestTable(t *testing.T) {
	plain := synth(t, "plain", nil).template.get(t, "Table", "AWS::DynamoDB::Table")
	plain.want(t, map[string]string{
		"KeySchema":                            `[{"AttributeName":"` + layout.Partition + `","KeyType":"HASH"},{"AttributeName":"` + layout.Sort + `","KeyType":"RANGE"}]`,
		"AttributeDefinitions.0.AttributeType": "S",
		"AttributeDefinitions.1.AttributeType": "S",
		"TimeToLiveSpecification":              `{"AttributeName":"` + layout.Expires + `","Enabled":true}`,
		"BillingMode":                          "PAY_PER_REQUEST",
		"DeletionProtectionEnabled":            "", // see rollback_test.go
		"PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled": "true",
		"SSESpecification": "", // the key that DynamoDB owns: free
	})
	if plain.DeletionPolicy != "RetainExceptOnCreate" || plain.UpdateReplacePolicy != "Retain" {
		t.Errorf("a protected table is to stay, got %s", plain.DeletionPolicy)
	}
	bare := synth(t, "everything", everything).template.get(t, "Table", "AWS::DynamoDB::Table")
	bare.want(t, map[string]string{
		"DeletionProtectionEnabled":                                   "",
		"PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled": "false",
	})
	if bare.DeletionPolicy != "Delete" {
		t.Errorf("an unprotected table is to go with the stack, got %s", bare.DeletionPolicy)
	}
}

// After a restore the functions use another table, and may use that one only. The
// one of the stack stays.
func TestTableFromABackup(t *testing.T) {
	tm := synth(t, "restored", fronts["restored"]).template
	own := tm.get(t, "Table", "AWS::DynamoDB::Table")
	if own.DeletionPolicy != "RetainExceptOnCreate" {
		t.Error("the table of the stack would go")
	}
	const arn = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/Blindpost-Restored"
	for _, name := range []string{"connect", "message", "sweeper"} {
		tm.get(t, title(name), "AWS::Lambda::Function").want(t, map[string]string{"Environment.Variables.BLINDPOST_TABLE": "Blindpost-Restored"})
		reaches := false
		for _, line := range allowed(t, tm.get(t, title(name)+"Role", "AWS::IAM::Role")) {
			action, resource, _ := strings.Cut(line, " ")
			if strings.HasPrefix(action, "dynamodb:") && resource != arn {
				t.Errorf("%s may do %s", name, line)
			}
			reaches = reaches || line == "dynamodb:PutItem "+arn
		}
		if !reaches {
			t.Errorf("%s cannot write to the table that it uses", name)
		}
	}
	if tm.outputs["TableName"] != "Blindpost-Restored" {
		t.Errorf("the output is %s", tm.outputs["TableName"])
	}
}

func TestQueues(t *testing.T) {
	tm := synth(t, "plain", nil).template
	for id, want := range map[string]map[string]string{
		"Ingress": {
			"FifoQueue": "true", "ContentBasedDeduplication": "false", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
			"VisibilityTimeout": "60", "MessageRetentionPeriod": "86400", "SqsManagedSseEnabled": "true",
			"RedrivePolicy.deadLetterTargetArn": "${IngressDeadLetters.Arn}", "RedrivePolicy.maxReceiveCount": "5",
		},
		"IngressDeadLetters": {"FifoQueue": "true", "MessageRetentionPeriod": "345600", "SqsManagedSseEnabled": "true", "RedrivePolicy": ""},
		"Jobs": {
			"FifoQueue": "", "VisibilityTimeout": "150", "MessageRetentionPeriod": "345600", "SqsManagedSseEnabled": "true",
			"RedrivePolicy.deadLetterTargetArn": "${JobsDeadLetters.Arn}", "RedrivePolicy.maxReceiveCount": "8",
		},
		"JobsDeadLetters": {"FifoQueue": "", "MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true", "RedrivePolicy": ""},
	} {
		t.Run(id, func(t *testing.T) { tm.get(t, id, "AWS::SQS::Queue").want(t, want) })
	}
}

func TestFunctions(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"connect":    {"MemorySize": "256", "Timeout": "15", "RecursiveLoop": ""},
		"message":    {"MemorySize": "256", "Timeout": "30", "RecursiveLoop": "Allow"},
		"disconnect": {"MemorySize": "128", "Timeout": "10", "RecursiveLoop": ""},
		"sweeper":    {"MemorySize": "256", "Timeout": "60", "RecursiveLoop": "Allow"},
	} {
		t.Run(name, func(t *testing.T) {
			want["Architectures"] = `["arm64"]`
			want["Runtime"] = "provided.al2023"
			want["Role"] = "${" + title(name) + "Role.Arn}"
			want["LoggingConfig.LogGroup"] = "${" + title(name) + "Log}"
			want["LoggingConfig.LogFormat"], want["LoggingConfig.SystemLogLevel"] = "JSON", "WARN"
			want["ReservedConcurrentExecutions"] = ""
			plain := synth(t, "plain", nil).template
			plain.get(t, title(name), "AWS::Lambda::Function").want(t, want)
			plain.get(t, title(name)+"Log", "AWS::Logs::LogGroup").want(t, map[string]string{"RetentionInDays": "14", "KmsKeyId": ""})

			full := synth(t, "everything", everything).template
			reserved := map[string]string{"connect": "11", "message": "12", "disconnect": "13", "sweeper": "14"}[name]
			full.get(t, title(name), "AWS::Lambda::Function").want(t, map[string]string{"ReservedConcurrentExecutions": reserved})
			full.get(t, title(name)+"Log", "AWS::Logs::LogGroup").want(t, map[string]string{"RetentionInDays": "30"})
		})
	}
	for name, want := range map[string]int{"everything": 4, "plain": 5} { // one protects the table
		if n := len(synth(t, name, fronts[name]).template.ofType("AWS::Lambda::Function")); n != want {
			t.Errorf("%s: there are %d functions: what else runs here?", name, n)
		}
	}
}

func TestWhatCallsTheFunctions(t *testing.T) {
	plain, full := synth(t, "plain", nil).template, synth(t, "everything", everything).template
	for id, want := range map[string]map[string]string{
		"IngressSource": {"EventSourceArn": "${Ingress.Arn}", "FunctionName": "${Message}", "ScalingConfig": ""},
		"JobsSource":    {"EventSourceArn": "${Jobs.Arn}", "FunctionName": "${Sweeper}", "ScalingConfig": ""},
	} {
		want["BatchSize"] = "10"
		want["FunctionResponseTypes"] = `["ReportBatchItemFailures"]`
		want["MaximumBatchingWindowInSeconds"] = ""
		plain.get(t, id, "AWS::Lambda::EventSourceMapping").want(t, want)
	}
	if n := len(full.ofType("AWS::Lambda::EventSourceMapping")); n != 2 {
		t.Errorf("%d queues are polled; each costs, idle or not", n)
	}
	full.get(t, "IngressSource", "AWS::Lambda::EventSourceMapping").want(t, map[string]string{"ScalingConfig.MaximumConcurrency": "15"})
	full.get(t, "JobsSource", "AWS::Lambda::EventSourceMapping").want(t, map[string]string{"ScalingConfig.MaximumConcurrency": "16"})
	plain.get(t, "Schedule", "AWS::Events::Rule").want(t, map[string]string{
		"ScheduleExpression": "rate(1 minute)", "State": "ENABLED", "Targets.0.Arn": "${Sweeper.Arn}", "Targets.0.Input": "", "Targets.0.InputTransformer": "",
		"Targets.1": "", "Targets.0.RetryPolicy.MaximumRetryAttempts": "0",
	})
}

func TestVisibilityOutlastsTheFunction(t *testing.T) {
	if ingressVisibility < 2*sizesOf["message"].timeout || jobsVisibility < 2*sizesOf["sweeper"].timeout {
		t.Errorf("a message must not come back while it is being handled")
	}
}

func TestRoutes(t *testing.T) {
	tm := synth(t, "plain", nil).template
	tm.get(t, "Api", "AWS::ApiGatewayV2::Api").want(t, map[string]string{
		"ProtocolType": "WEBSOCKET", "RouteSelectionExpression": "$request.body.blindpostRoute", "DisableExecuteApiEndpoint": "",
	})
	targets := map[string]resource{}
	for _, r := range tm.ofType("AWS::ApiGatewayV2::Route") {
		if r.at("ApiId") != "${Api}" {
			continue // http_test.go
		}
		r.want(t, map[string]string{"AuthorizationType": "NONE", "RouteResponseSelectionExpression": ""})
		id := strings.TrimSuffix(strings.TrimPrefix(r.at("Target"), "integrations/${"), "}")
		targets[r.at("RouteKey")] = tm.get(t, id, "AWS::ApiGatewayV2::Integration")
	}
	if len(targets) != 3 {
		t.Fatalf("routes are %v", targets)
	}
	for route, function := range map[string]string{"$connect": "Connect", "$disconnect": "Disconnect"} {
		targets[route].want(t, map[string]string{
			"IntegrationType": "AWS_PROXY",
			"IntegrationUri":  "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${" + function + ".Arn}/invocations",
		})
	}
	template, err := json.Marshal(map[string]string{record.TemplateKey: record.Template})
	if err != nil {
		t.Fatal(err)
	}
	targets["$default"].want(t, map[string]string{
		"IntegrationType":             "AWS",
		"IntegrationMethod":           "POST",
		"IntegrationUri":              "arn:${AWS::Partition}:apigateway:${AWS::Region}:sqs:path/${AWS::AccountId}/${Ingress.QueueName}",
		"PassthroughBehavior":         "NEVER",
		"RequestParameters":           `{"integration.request.header.Content-Type":"'application/x-www-form-urlencoded'"}`,
		"TemplateSelectionExpression": "frame",
		"RequestTemplates":            string(template),
		"CredentialsArn":              "${FrameRole.Arn}",
		"ContentHandlingStrategy":     "",
	})
}

func TestStage(t *testing.T) {
	plain := synth(t, "plain", nil).template
	stage := plain.get(t, "Stage", "AWS::ApiGatewayV2::Stage")
	stage.want(t, map[string]string{
		"StageName": "prod", "AutoDeploy": "true",
		"DefaultRouteSettings.ThrottlingRateLimit": "500", "DefaultRouteSettings.ThrottlingBurstLimit": "1000",
		// Neither would be without the content of frames.
		"DefaultRouteSettings.DataTraceEnabled": "", "DefaultRouteSettings.LoggingLevel": "",
		"AccessLogSettings.DestinationArn": "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:${AccessLog}",
	})
	if format := stage.at("AccessLogSettings.Format"); !strings.Contains(format, "$context.connectionId") ||
		strings.Contains(strings.ToLower(format), "querystring") || strings.Contains(format, "path") || strings.Contains(format, "authorizer") ||
		strings.Contains(format, "identity") || !json.Valid([]byte(format)) {
		t.Errorf("the access log has %s", format)
	}
	// Without the role of the region an access log cannot be turned on.
	if depends := list(stage.DependsOn); !strings.Contains(flat(depends), "ApiAccount") {
		t.Errorf("the stage depends on %v", depends)
	}
	plain.get(t, "ApiAccount", "AWS::ApiGateway::Account").want(t, map[string]string{"CloudWatchRoleArn": "${ApiLoggingRole.Arn}"})

	full := synth(t, "everything", everything).template
	full.get(t, "Stage", "AWS::ApiGatewayV2::Stage").want(t, map[string]string{
		"DefaultRouteSettings.ThrottlingRateLimit": "50", "DefaultRouteSettings.ThrottlingBurstLimit": "60",
	})
	if len(full.ofType("AWS::ApiGateway::Account")) != 0 {
		t.Error("the region's logging role was to be left alone")
	}
	small := synth(t, "small", fronts["small"]).template
	small.get(t, "Stage", "AWS::ApiGatewayV2::Stage").want(t, map[string]string{"AccessLogSettings": ""})
	if len(small.ofType("AWS::ApiGateway::Account")) != 0 {
		t.Error("the logging role was made without an access log")
	}
}

// What API Gateway documents for access logs; without the id of the request it refuses
// a format. It keeps a variable that it does not know as it is, which is found here.
func TestAccessLogFormats(t *testing.T) {
	both := "requestId extendedRequestId requestTime requestTimeEpoch routeKey stage status apiId domainName error.message error.messageString error.responseType " +
		"integration.error integration.integrationStatus integration.latency integration.requestId integration.status"
	known := map[string][]string{
		"WEBSOCKET": strings.Fields(both + " connectionId connectedAt eventType messageId error.validationErrorString integrationLatency"),
		"HTTP":      strings.Fields(both + " httpMethod path protocol responseLength responseLatency dataProcessed integrationErrorMessage integrationLatency integrationStatus"),
	}
	logs := 0
	for name, context := range fronts {
		tm := synth(t, name, context).template
		for id, stage := range tm.ofType("AWS::ApiGatewayV2::Stage") {
			format := stage.at("AccessLogSettings.Format")
			if format == "" {
				continue
			}
			logs++
			api := strings.Trim(stage.at("ApiId"), "${}")
			used := regexp.MustCompile(`\$context\.[A-Za-z.]+`).FindAllString(format, -1)
			if !slices.Contains(used, "$context.requestId") && !slices.Contains(used, "$context.extendedRequestId") {
				t.Errorf("%s: %s has no id of the request in its access log: %s", name, id, format)
			}
			for _, v := range used {
				if kind := tm.get(t, api, "AWS::ApiGatewayV2::Api").at("ProtocolType"); !slices.Contains(known[kind], strings.TrimPrefix(v, "$context.")) {
					t.Errorf("%s: %s logs %s, which no %s API has", name, id, v, kind)
				}
			}
			if !json.Valid([]byte(format)) || strings.Contains(format, "\n") {
				t.Errorf("%s: %s is no JSON in one line: %s", name, id, format)
			}
		}
	}
	if logs == 0 {
		t.Error("there is no access log")
	}
}

func TestNothingCostsWhileIdle(t *testing.T) {
	rented := []string{"AWS::EC2::VPC", "AWS::ECS::Service", "AWS::ElasticLoadBalancingV2::LoadBalancer"}
	for name, context := range fronts {
		for id, r := range synth(t, name, context).template.resources {
			switch r.Type {
			case "AWS::KMS::Key", "AWS::EC2::NatGateway", "AWS::EC2::EIP", "AWS::Lambda::Version", "AWS::CloudWatch::InsightRule", "AWS::EC2::VPCEndpoint":
				t.Errorf("%s: %s is a %s", name, id, r.Type)
			}
			if front, _ := context["blindpost:binary-front"].(bool); !front && slices.Contains(rented, r.Type) {
				t.Errorf("%s: %s is a %s, and the binary front was not asked for", name, id, r.Type)
			}
			if r.Properties["ProvisionedConcurrencyConfig"] != nil || r.Properties["TracingConfig"] != nil {
				t.Errorf("%s: %s costs while it does nothing", name, id)
			}
		}
	}
}
