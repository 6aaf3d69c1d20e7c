//go:build cdk

package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

func TestEdge(t *testing.T) {
	tm := synth(t, "everything", everything).template
	d := tm.get(t, "Edge", "AWS::CloudFront::Distribution")
	d.want(t, map[string]string{
		"DistributionConfig.Aliases":                                                 `["relay.example.org"]`,
		"DistributionConfig.Enabled":                                                 "true",
		"DistributionConfig.ViewerCertificate.AcmCertificateArn":                     "arn:aws:acm:us-east-1:123456789012:certificate/0a1b-2c3d",
		"DistributionConfig.ViewerCertificate.MinimumProtocolVersion":                "TLSv1.2_2021",
		"DistributionConfig.Logging":                                                 "",
		"DistributionConfig.CacheBehaviors":                                          "",
		"DistributionConfig.DefaultCacheBehavior.ViewerProtocolPolicy":               "https-only",
		"DistributionConfig.DefaultCacheBehavior.CachePolicyId":                      "4135ea2d-6df8-44a3-9df3-4b5a84be39ad", // CachingDisabled
		"DistributionConfig.DefaultCacheBehavior.OriginRequestPolicyId":              "b689b0a8-53d0-40ab-baf2-68738e2966ac", // AllViewerExceptHostHeader
		"DistributionConfig.DefaultCacheBehavior.AllowedMethods":                     `["GET","HEAD"]`,
		"DistributionConfig.DefaultCacheBehavior.FunctionAssociations.0.EventType":   "viewer-request",
		"DistributionConfig.DefaultCacheBehavior.FunctionAssociations.0.FunctionARN": "${EdgePath.FunctionARN}",
		"DistributionConfig.Origins.0.DomainName":                                    "${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}",
		"DistributionConfig.Origins.0.OriginPath":                                    "",
		"DistributionConfig.Origins.0.CustomOriginConfig.OriginProtocolPolicy":       "https-only",
		"DistributionConfig.Origins.0.CustomOriginConfig.OriginSSLProtocols":         `["TLSv1.2"]`,
		"DistributionConfig.Origins.0.OriginCustomHeaders.0.HeaderName":              "X-Origin-Secret",
		"DistributionConfig.Origins.1":                                               "",
	})
	f := tm.get(t, "EdgePath", "AWS::CloudFront::Function")
	f.want(t, map[string]string{"FunctionCode": edgeCode(), "FunctionConfig.Runtime": "cloudfront-js-2.0", "AutoPublish": "true"})
	if len(edgeCode()) > 10_000 {
		t.Errorf("the function has %d bytes, CloudFront takes 10 KB", len(edgeCode()))
	}
	for _, id := range []string{"DomainRecord", "DomainRecord6"} {
		tm.get(t, id, "AWS::Route53::RecordSet").want(t, map[string]string{
			"Name": "relay.example.org.", "HostedZoneId": "Z0123456789", "AliasTarget.DNSName": "${Edge.DomainName}",
		})
	}
}

// The function is run here as CloudFront would.
func TestEdgePath(t *testing.T) {
	type query = map[string]map[string]any
	for _, tt := range []struct {
		name, uri string
		query     query
		want      query
	}{
		{"path", "/v1/ws", query{}, query{"p": {"value": "%2Fv1%2Fws"}}},
		{"root", "/", query{}, query{"p": {"value": "%2F"}}},
		{"query stays", "/v1/ws", query{"device": {"value": "a%20b"}}, query{"device": {"value": "a%20b"}, "p": {"value": "%2Fv1%2Fws"}}},
		{"the client's own is dropped", "/a", query{"p": {"value": "x", "multiValue": []any{map[string]any{"value": "x"}}}, "P": {"value": "1"}}, query{"P": {"value": "1"}, "p": {"value": "%2Fa"}}},
		{"in disguise too", "/a", query{"%70": {"value": "x"}, "%": {"value": "x"}, "pp": {"value": "1"}}, query{"pp": {"value": "1"}, "p": {"value": "%2Fa"}}},
		{"escapes in the path", "/a%2Fb?&p=1", query{}, query{"p": {"value": "%2Fa%252Fb%3F%26p%3D1"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			event, err := json.Marshal(map[string]any{"request": map[string]any{"uri": tt.uri, "querystring": tt.query, "method": "GET"}})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("node", "-")
			cmd.Stdin = strings.NewReader(edgeCode() + "\nconsole.log(JSON.stringify(handler(" + string(event) + ")));")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var got struct {
				URI, Method string
				Querystring query
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			q, _ := json.Marshal(got.Querystring)
			want, _ := json.Marshal(tt.want)
			if got.URI != "/prod" || got.Method != "GET" || string(q) != string(want) {
				t.Errorf("got %s, %s\nwant /prod, %s", got.URI, q, want)
			}
		})
	}
}

func TestDomainWithoutEdge(t *testing.T) {
	tm := synth(t, "domain", fronts["domain"]).template
	tm.get(t, "Domain", "AWS::ApiGatewayV2::DomainName").want(t, map[string]string{
		"DomainName": "relay.example.org", "DomainNameConfigurations.0.CertificateArn": "${Certificate}",
		"DomainNameConfigurations.0.EndpointType": "REGIONAL", "DomainNameConfigurations.0.SecurityPolicy": "TLS_1_2",
	})
	tm.get(t, "Certificate", "AWS::CertificateManager::Certificate").want(t, map[string]string{
		"DomainName": "relay.example.org", "ValidationMethod": "DNS", "DomainValidationOptions.0.HostedZoneId": "Z0123456789",
	})
	tm.get(t, "DomainMapping", "AWS::ApiGatewayV2::ApiMapping").want(t, map[string]string{
		"ApiId": "${Api}", "DomainName": "${Domain}", "Stage": "prod", "ApiMappingKey": "",
	})
	if d := flat(tm.get(t, "DomainMapping", "AWS::ApiGatewayV2::ApiMapping").DependsOn); !strings.Contains(d, "Stage") {
		t.Errorf("the mapping can be made before its stage: it depends on %q", d)
	}
	tm.get(t, "DomainRecord", "AWS::Route53::RecordSet").want(t, map[string]string{
		"Name": "relay.example.org.", "Type": "A", "AliasTarget.DNSName": "${Domain.RegionalDomainName}",
	})
	if len(tm.ofType("AWS::CloudFront::Distribution"))+len(tm.ofType("AWS::SecretsManager::Secret")) != 0 {
		t.Error("nobody asked for the edge")
	}
}

func TestOutputs(t *testing.T) {
	const host = "${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/prod"
	for name, want := range map[string]map[string]string{
		"plain":      {"Url": "wss://" + host, "ApiUrl": "wss://" + host, "CallbackUrl": "https://" + host, "EdgeUrl": ""},
		"everything": {"Url": "wss://relay.example.org", "EdgeUrl": "wss://${Edge.DomainName}", "CallbackUrl": "https://" + host},
		"edge alone": {"Url": "wss://${Edge.DomainName}"},
		"domain":     {"Url": "wss://relay.example.org", "DomainTarget": "${Domain.RegionalDomainName}", "EdgeUrl": ""},
	} {
		tm := synth(t, name, fronts[name]).template
		for id, value := range want {
			if tm.outputs[id] != value {
				t.Errorf("%s: %s is %q, want %q", name, id, tm.outputs[id], value)
			}
		}
		if tm.outputs["TableName"] != "${Table}" || tm.outputs["IngressDeadLettersUrl"] != "${IngressDeadLetters}" || tm.outputs["JobsDeadLettersUrl"] != "${JobsDeadLetters}" {
			t.Errorf("%s: outputs are %v", name, tm.outputs)
		}
	}
}
