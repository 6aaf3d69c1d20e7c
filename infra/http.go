//go:build cdk

package main

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/jsii-runtime-go"
)

// A post is one HTTP endpoint of Agentknock: the route of the HTTP API, and the
// pattern by which CloudFront knows its path.
type post struct{ route, pattern string }

func posts() []post {
	var all []post
	for _, verb := range []string{"claim", "address", "pairing", "push", "delete", "review"} {
		all = append(all, post{"/v1/device/{device_id}/" + verb, "/v1/device/*/" + verb})
	}
	return append(all, post{"/v1/device/{device_id}/subscription/{action}", "/v1/device/*/subscription/*"})
}

// newHTTP makes the API for plain HTTP requests: a device claims its name and sets its
// push endpoint. It is reached by the paths of CloudFront only, and handled by
// the function that admits connections.
func (r *relay) newHTTP() {
	r.http = awsapigatewayv2.NewHttpApi(r.Stack, str("Http"), &awsapigatewayv2.HttpApiProps{
		Description:        str("Blindpost, the HTTP endpoints of Agentknock"),
		CreateDefaultStage: jsii.Bool(false),
	})
	integration := awsapigatewayv2integrations.NewHttpLambdaIntegration(str("PostIntegration"), r.functions["connect"].Function,
		&awsapigatewayv2integrations.HttpLambdaIntegrationProps{
			PayloadFormatVersion: awsapigatewayv2.PayloadFormatVersion_VERSION_2_0(),
			// One permission for the API instead of one for each route.
			ScopePermissionToRoute: jsii.Bool(false),
		})
	for _, p := range posts() {
		r.http.AddRoutes(&awsapigatewayv2.AddRoutesOptions{
			Path: str(p.route), Methods: &[]awsapigatewayv2.HttpMethod{awsapigatewayv2.HttpMethod_POST}, Integration: integration,
		})
	}
	props := &awsapigatewayv2.HttpStageProps{
		HttpApi:    r.http,
		AutoDeploy: jsii.Bool(true),
		Throttle: &awsapigatewayv2.ThrottleSettings{
			RateLimit:  jsii.Number(r.settings.throttleRate),
			BurstLimit: jsii.Number(r.settings.throttleBurst),
		},
	}
	r.httpStage = awsapigatewayv2.NewHttpStage(r.Stack, str("HttpStage"), props)
	if r.settings.accessLog {
		cfn := r.httpStage.Node().DefaultChild().(awsapigatewayv2.CfnStage)
		cfn.SetAccessLogSettings(r.accessLogSettings("HttpAccessLog", httpLogFields))
	}
}

// httpLogFields is one line for each request. The route stands for the path, which
// names a device.
var httpLogFields = map[string]string{
	"requestId":          "$context.requestId",
	"route":              "$context.routeKey",
	"requestTimeEpoch":   "$context.requestTimeEpoch",
	"status":             "$context.status",
	"responseLength":     "$context.responseLength",
	"integrationStatus":  "$context.integration.status",
	"integrationLatency": "$context.integration.latency",
	"errorResponseType":  "$context.error.responseType",
}

func (r *relay) accessLogSettings(id string, fields map[string]string) *awsapigatewayv2.CfnStage_AccessLogSettingsProperty {
	format, err := json.Marshal(fields)
	if err != nil {
		panic(err) // a map of texts has a JSON form
	}
	return &awsapigatewayv2.CfnStage_AccessLogSettingsProperty{
		DestinationArn: str(r.arn("logs", "log-group:"+*r.newLogGroup(r.Stack, id).LogGroupName())),
		Format:         str(string(format)),
	}
}

// httpHost is the host name of the HTTP API.
func (r *relay) httpHost() string { return r.executeAPI(*r.http.ApiId()) }
