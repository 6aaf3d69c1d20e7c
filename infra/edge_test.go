//go:build cdk

package main

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// behaviors are how CloudFront treats its paths; "" is any other.
func behaviors(t *testing.T, tm *template) (map[string]resource, map[string]resource) {
	t.Helper()
	config := tm.get(t, "Edge", "AWS::CloudFront::Distribution").value("DistributionConfig").(map[string]any)
	paths := map[string]resource{"": {Properties: config["DefaultCacheBehavior"].(map[string]any)}}
	for _, b := range list(config["CacheBehaviors"]) {
		r := resource{Properties: b.(map[string]any)}
		paths[r.at("PathPattern")] = r
	}
	origins := map[string]resource{}
	for _, o := range list(config["Origins"]) {
		r := resource{Properties: o.(map[string]any)}
		origins[r.at("Id")] = r
	}
	return paths, origins
}

// Without a binary front the paths of Aelos lead to API Gateway like all others.
func TestAelosAtTheEdge(t *testing.T) {
	tm := synth(t, "boats", fronts["boats"]).template
	paths, _ := behaviors(t, tm)
	for pattern := range paths {
		if strings.Contains(pattern, "aelos") {
			t.Errorf("there is a way of its own for %s", pattern)
		}
	}
	if role := allowed(t, tm.get(t, "MessageRole", "AWS::IAM::Role")); !slices.Contains(role, "secretsmanager:GetSecretValue "+aelosSecret) {
		t.Errorf("functions/message may not read the secret: %v", role)
	}
}

const (
	webSocketHost = "${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}"
	httpAPIHost   = "${Http}.execute-api.${AWS::Region}.${AWS::URLSuffix}"
)

func TestEdge(t *testing.T) {
	tm := synth(t, "everything", everything).template
	tm.get(t, "Edge", "AWS::CloudFront::Distribution").want(t, map[string]string{
		"DistributionConfig.Aliases":                                  `["relay.example.org"]`,
		"DistributionConfig.Enabled":                                  "true",
		"DistributionConfig.IPV6Enabled":                              "true",
		"DistributionConfig.ViewerCertificate.AcmCertificateArn":      "arn:aws:acm:us-east-1:123456789012:certificate/0a1b-2c3d",
		"DistributionConfig.ViewerCertificate.MinimumProtocolVersion": "TLSv1.2_2021",
		"DistributionConfig.Logging":                                  "",
	})
	for id, code := range map[string]string{"EdgePath": edgeCode(), "EdgePost": edgePostCode()} {
		tm.get(t, id, "AWS::CloudFront::Function").want(t, map[string]string{
			"FunctionCode": code, "FunctionConfig.Runtime": "cloudfront-js-2.0", "AutoPublish": "true",
		})
		if len(code) > 10_000 || strings.Contains(code, "__") {
			t.Errorf("%s has %d bytes, CloudFront takes 10 KB: %s", id, len(code), code)
		}
	}
	for _, id := range []string{"DomainRecord", "DomainRecord6"} {
		tm.get(t, id, "AWS::Route53::RecordSet").want(t, map[string]string{
			"Name": "relay.example.org.", "HostedZoneId": "Z0123456789", "AliasTarget.DNSName": "${Edge.DomainName}",
		})
	}
}

// Each path goes to what serves it, with all that the client has sent, and nothing is kept.
func TestPathsOfAllDialects(t *testing.T) {
	const reads = `["GET","HEAD"]`
	get := [3]string{webSocketHost, "${EdgePath.FunctionARN}", reads}
	post := [3]string{httpAPIHost, "${EdgePost.FunctionARN}", `["GET","HEAD","OPTIONS","PUT","PATCH","POST","DELETE"]`}
	frames := [3]string{"frames.example.org", "", reads}
	agentknock := map[string][3]string{
		"/v1/device/*/claim": post, "/v1/device/*/address": post, "/v1/device/*/pairing": post, "/v1/device/*/push": post,
		"/v1/device/*/delete": post, "/v1/device/*/review": post, "/v1/device/*/subscription/*": post,
	}
	with := func(more map[string][3]string) map[string][3]string {
		all := maps.Clone(agentknock)
		maps.Copy(all, more)
		return all
	}
	for name, want := range map[string]map[string][3]string{
		"edge":       with(map[string][3]string{"": get}),
		"everything": with(map[string][3]string{"": get, "/v1/aelos": frames, "/boats": frames}),
		"binary":     with(map[string][3]string{"": frames, "/v1/aelos": frames}),
	} {
		paths, origins := behaviors(t, synth(t, name, fronts[name]).template)
		for pattern, b := range paths {
			w, ok := want[pattern]
			if !ok {
				t.Errorf("%s: there is a path %q", name, pattern)
				continue
			}
			delete(want, pattern)
			b.want(t, map[string]string{
				"ViewerProtocolPolicy":               "https-only",
				"CachePolicyId":                      "4135ea2d-6df8-44a3-9df3-4b5a84be39ad", // CachingDisabled
				"OriginRequestPolicyId":              "b689b0a8-53d0-40ab-baf2-68738e2966ac", // AllViewerExceptHostHeader
				"AllowedMethods":                     w[2],
				"FunctionAssociations.0.FunctionARN": w[1],
				"FunctionAssociations.1":             "",
				"Compress":                           "false",
				"ResponseHeadersPolicyId":            "",
				"LambdaFunctionAssociations":         "",
				"TrustedKeyGroups":                   "",
				"FunctionAssociations.0.EventType":   map[bool]string{true: "viewer-request"}[w[1] != ""],
			})
			origins[b.at("TargetOriginId")].want(t, map[string]string{
				"DomainName": w[0], "OriginPath": "",
				"CustomOriginConfig.OriginProtocolPolicy": "https-only",
				"CustomOriginConfig.OriginSSLProtocols":   `["TLSv1.2"]`,
				"OriginCustomHeaders.0.HeaderName":        "X-Origin-Secret",
			})
		}
		for pattern := range want {
			t.Errorf("%s: the path %q is missing", name, pattern)
		}
	}
}

// runAtEdge calls a function of CloudFront as CloudFront would.
func runAtEdge(t *testing.T, code string, request map[string]any) map[string]any {
	t.Helper()
	event, err := json.Marshal(map[string]any{"request": request})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "-")
	cmd.Stdin = strings.NewReader(code + "\nconsole.log(JSON.stringify(handler(" + string(event) + ")));")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEdgePost(t *testing.T) {
	for _, tt := range []struct {
		method, length, want string
	}{
		{"POST", "", ""},
		{"POST", "0", ""},
		{"POST", "65536", ""},
		{"POST", "65537", "413 PAYLOAD_TOO_LARGE"},
		{"POST", "many", "413 PAYLOAD_TOO_LARGE"},
		{"GET", "", "405 METHOD_NOT_ALLOWED"},
		{"DELETE", "2", "405 METHOD_NOT_ALLOWED"},
	} {
		headers := map[string]any{"authorization": map[string]any{"value": "Bearer x"}}
		if tt.length != "" {
			headers["content-length"] = map[string]any{"value": tt.length}
		}
		request := map[string]any{"uri": "/v1/device/x/claim", "querystring": map[string]any{}, "method": tt.method, "headers": headers}
		got := runAtEdge(t, edgePostCode(), request)
		if tt.want == "" {
			if flat(got) != flat(request) {
				t.Errorf("%s of %q was changed: %v", tt.method, tt.length, got)
			}
			continue
		}
		body := map[string]string{}
		if err := json.Unmarshal([]byte(flat(got["body"])), &body); err != nil || body["message"] == "" {
			t.Errorf("%s of %q: %v, %v", tt.method, tt.length, got, err)
		}
		if said := flat(got["statusCode"]) + " " + body["error"]; said != tt.want {
			t.Errorf("%s of %q: %s, want %s", tt.method, tt.length, said, tt.want)
		}
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
			got := runAtEdge(t, edgeCode(), map[string]any{"uri": tt.uri, "querystring": tt.query, "method": "GET"})
			q, _ := json.Marshal(got["querystring"])
			want, _ := json.Marshal(tt.want)
			if got["uri"] != "/prod" || got["method"] != "GET" || string(q) != string(want) {
				t.Errorf("got %s, %s\nwant /prod, %s", got["uri"], q, want)
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
	tm.get(t, "PathMapping", "AWS::ApiGatewayV2::ApiMapping").want(t, map[string]string{
		"ApiId": "${Api}", "DomainName": "${Domain}", "Stage": "prod", "ApiMappingKey": "v1/ws",
	})
	if d := flat(tm.get(t, "DomainMapping", "AWS::ApiGatewayV2::ApiMapping").DependsOn); !strings.Contains(d, "Stage") {
		t.Errorf("the mapping can be made before its stage: it depends on %q", d)
	}
	tm.get(t, "DomainRecord", "AWS::Route53::RecordSet").want(t, map[string]string{
		"Name": "relay.example.org.", "Type": "A", "AliasTarget.DNSName": "${Domain.RegionalDomainName}",
	})
	if len(tm.ofType("AWS::CloudFront::Distribution"))+len(tm.ofType("AWS::SecretsManager::Secret"))+len(tm.ofType("AWS::CloudFront::Function")) != 0 {
		t.Error("the edge was not asked for")
	}
}

func TestOutputs(t *testing.T) {
	const host = "${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/prod"
	for name, want := range map[string]map[string]string{
		"plain":      {"Url": "wss://" + host, "ApiUrl": "wss://" + host, "CallbackUrl": "https://" + host, "EdgeUrl": "", "BinaryUrl": "", "HttpUrl": ""},
		"everything": {"Url": "wss://relay.example.org", "HttpUrl": "https://relay.example.org", "DomainTarget": "${Edge.DomainName}", "EdgeUrl": "wss://${Edge.DomainName}", "CallbackUrl": "https://" + host, "BinaryUrl": "wss://frames.example.org", "BinaryTarget": "${BinaryBalancer.DNSName}"},
		"edge":       {"Url": "wss://${Edge.DomainName}", "EdgeUrl": "wss://${Edge.DomainName}", "HttpUrl": "https://${Edge.DomainName}", "DomainTarget": ""},
		"domain":     {"Url": "wss://relay.example.org", "DomainTarget": "${Domain.RegionalDomainName}", "EdgeUrl": ""},
	} {
		tm := synth(t, name, fronts[name]).template
		for id, value := range want {
			if tm.outputs[id] != value {
				t.Errorf("%s: %s is %q, want %q", name, id, tm.outputs[id], value)
			}
		}
		if tm.outputs["ConnectFunction"] != "${Connect}" || tm.outputs["MessageFunction"] != "${Message}" || tm.outputs["DisconnectFunction"] != "${Disconnect}" {
			t.Errorf("%s: outputs are %v", name, tm.outputs)
		}
		if tm.outputs["TableName"] != "${Table}" || tm.outputs["IngressDeadLettersUrl"] != "${IngressDeadLetters}" || tm.outputs["JobsDeadLettersUrl"] != "${JobsDeadLetters}" {
			t.Errorf("%s: outputs are %v", name, tm.outputs)
		}
	}
}
