//go:build cdk

package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"blindpost/shared/gateway/apigw/record"
)

// stageName is the path of the API's own address.
const stageName = "prod"

// routeSelection names a property that no dialect has in its frames. So every frame
// goes to $default, also the JSON {"action":"$disconnect"}.
const routeSelection = "$request.body.blindpostRoute"

func newAPI(stack awscdk.Stack) awsapigatewayv2.WebSocketApi {
	return awsapigatewayv2.NewWebSocketApi(stack, str("Api"), &awsapigatewayv2.WebSocketApiProps{
		Description:              str("Blindpost"),
		RouteSelectionExpression: str(routeSelection),
	})
}

// apiHost is the host name of the API itself. It is spelled out, because the
// stage must not be there before the functions that know its address.
func (r *relay) apiHost() string { return r.executeAPI(*r.api.ApiId()) }

func (r *relay) executeAPI(id string) string {
	return fmt.Sprintf("%s.execute-api.%s.%s", id, *r.Region(), *r.UrlSuffix())
}

func (r *relay) apiURL() string { return "wss://" + r.apiHost() + "/" + stageName }

// callbackURL is the API's own address also behind a domain: only it serves
// @connections for all of them.
func (r *relay) callbackURL() string { return "https://" + r.apiHost() + "/" + stageName }

func (r *relay) newRoutes() {
	call := func(id, name string) awsapigatewayv2.WebSocketRouteIntegration {
		return awsapigatewayv2integrations.NewWebSocketLambdaIntegration(str(id), r.functions[name].Function, nil)
	}
	add := func(route string, integration awsapigatewayv2.WebSocketRouteIntegration) {
		r.api.AddRoute(str(route), &awsapigatewayv2.WebSocketRouteOptions{Integration: integration})
	}
	add("$connect", call("ConnectIntegration", "connect"))
	add("$default", r.newFrameIntegration())
	add("$disconnect", call("DisconnectIntegration", "disconnect"))
}

// newFrameIntegration puts frames into the ordered queue without a function in
// between. API Gateway handles the frames of one connection in parallel; the queue
// keeps their order.
func (r *relay) newFrameIntegration() awsapigatewayv2.WebSocketRouteIntegration {
	role := awsiam.NewRole(r.Stack, str("FrameRole"), &awsiam.RoleProps{
		Description: str("Blindpost: API Gateway puts frames into the queue"),
		AssumedBy:   awsiam.NewServicePrincipal(str("apigateway.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"permissions": document([]permission{
			{[]string{"sqs:SendMessage"}, []string{*r.queues.ingress.QueueArn()}},
		})},
	})
	uri := fmt.Sprintf("arn:%s:apigateway:%s:sqs:path/%s/%s",
		*r.Partition(), *r.Region(), *r.Account(), *r.queues.ingress.QueueName())
	return awsapigatewayv2integrations.NewWebSocketAwsIntegration(str("FrameIntegration"),
		&awsapigatewayv2integrations.WebSocketAwsIntegrationProps{
			IntegrationMethod:           str("POST"),
			IntegrationUri:              &uri,
			CredentialsRole:             role,
			PassthroughBehavior:         awsapigatewayv2.PassthroughBehavior_NEVER,
			RequestParameters:           &map[string]*string{"integration.request.header.Content-Type": str("'" + record.ContentType + "'")},
			TemplateSelectionExpression: str(record.TemplateKey),
			RequestTemplates:            &map[string]*string{record.TemplateKey: str(record.Template)},
		})
}

// accessLogFields is one line for each connect, frame and disconnect. It has
// no path and no query, where dialects carry tokens, and no address. The log costs by
// the byte, hence the short names; CloudWatch adds the time.
var accessLogFields = map[string]string{
	"id":    "$context.requestId", // without it there is no access log
	"conn":  "$context.connectionId",
	"event": "$context.eventType",
	"http":  "$context.status",
	"back":  "$context.integration.status",
	"ms":    "$context.integration.latency",
	"error": "$context.error.responseType",
}

func (r *relay) newStage() {
	s := r.settings
	r.stage = awsapigatewayv2.NewWebSocketStage(r.Stack, str("Stage"), &awsapigatewayv2.WebSocketStageProps{
		WebSocketApi: r.api,
		StageName:    str(stageName),
		AutoDeploy:   jsii.Bool(true),
		Throttle: &awsapigatewayv2.ThrottleSettings{
			RateLimit:  jsii.Number(s.throttleRate),
			BurstLimit: jsii.Number(s.throttleBurst),
		},
	})
	if !s.accessLog {
		return
	}
	cfn := r.stage.Node().DefaultChild().(awsapigatewayv2.CfnStage)
	cfn.SetAccessLogSettings(r.accessLogSettings("AccessLog", accessLogFields))
	if s.loggingRole {
		r.stage.Node().AddDependency(r.newLoggingRole())
	}
}

// newLoggingRole lets API Gateway write logs. That is a setting of the whole
// region of an account, and without it no WebSocket API can have an access log. It
// stays when the stack is deleted, since other APIs may use it by then, but not when the
// first deployment fails.
func (r *relay) newLoggingRole() awsapigateway.CfnAccount {
	r.loggingRole = awsiam.NewRole(r.Stack, str("ApiLoggingRole"), &awsiam.RoleProps{
		Description: str("API Gateway writes logs to CloudWatch (for all APIs of the region)"),
		AssumedBy:   awsiam.NewServicePrincipal(str("apigateway.amazonaws.com"), nil),
		ManagedPolicies: &[]awsiam.IManagedPolicy{awsiam.ManagedPolicy_FromAwsManagedPolicyName(
			str("service-role/AmazonAPIGatewayPushToCloudWatchLogs"))},
	})
	r.loggingRole.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE)
	account := awsapigateway.NewCfnAccount(r.Stack, str("ApiAccount"), &awsapigateway.CfnAccountProps{
		CloudWatchRoleArn: r.loggingRole.RoleArn(),
	})
	account.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE, nil)
	return account
}
