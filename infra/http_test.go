//go:build cdk

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// The HTTP API has one route for each endpoint, and each goes to functions/connect.
func TestHTTP(t *testing.T) {
	tm := synth(t, "edge", fronts["edge"]).template
	tm.get(t, "Http", "AWS::ApiGatewayV2::Api").want(t, map[string]string{
		"ProtocolType": "HTTP", "CorsConfiguration": "", "DisableExecuteApiEndpoint": "", "Target": "",
	})
	var routes []string
	for _, r := range tm.ofType("AWS::ApiGatewayV2::Route") {
		if r.at("ApiId") != "${Http}" {
			continue
		}
		r.want(t, map[string]string{"AuthorizationType": "NONE"})
		routes = append(routes, r.at("RouteKey"))
		id := strings.TrimSuffix(strings.TrimPrefix(r.at("Target"), "integrations/${"), "}")
		tm.get(t, id, "AWS::ApiGatewayV2::Integration").want(t, map[string]string{
			"IntegrationType": "AWS_PROXY", "IntegrationUri": "${Connect.Arn}", "PayloadFormatVersion": "2.0", "RequestParameters": "",
		})
	}
	var want []string
	for _, verb := range []string{"claim", "address", "pairing", "push", "delete", "review", "subscription/{action}"} {
		want = append(want, "POST /v1/device/{device_id}/"+verb)
	}
	same(t, "routes", routes, want)
}

func TestHTTPStage(t *testing.T) {
	stage := synth(t, "edge", fronts["edge"]).template.get(t, "HttpStage", "AWS::ApiGatewayV2::Stage")
	stage.want(t, map[string]string{
		"ApiId": "${Http}", "StageName": "$default", "AutoDeploy": "true",
		"DefaultRouteSettings.ThrottlingRateLimit": "500", "DefaultRouteSettings.ThrottlingBurstLimit": "1000",
		"AccessLogSettings.DestinationArn": "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:${HttpAccessLog}",
	})
	format := stage.at("AccessLogSettings.Format")
	for _, never := range []string{"path", "querystring", "identity", "authorizer", "header"} {
		if strings.Contains(strings.ToLower(format), never) {
			t.Errorf("the access log has %s: %s", never, format)
		}
	}
	if !json.Valid([]byte(format)) || !strings.Contains(format, "$context.routeKey") {
		t.Errorf("the access log has %s", format)
	}
	synth(t, "everything", everything).template.get(t, "HttpStage", "AWS::ApiGatewayV2::Stage").want(t, map[string]string{
		"DefaultRouteSettings.ThrottlingRateLimit": "50", "DefaultRouteSettings.ThrottlingBurstLimit": "60",
	})
	synth(t, "no log", fronts["no log"]).template.get(t, "HttpStage", "AWS::ApiGatewayV2::Stage").want(t, map[string]string{"AccessLogSettings": ""})
	for id, a := range synth(t, "plain", nil).template.ofType("AWS::ApiGatewayV2::Api") {
		if a.at("ProtocolType") != "WEBSOCKET" {
			t.Errorf("there is an API %s that no path of Agentknock leads to", id)
		}
	}
}
