//go:build cdk

package main

import (
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// suppressFindings suppresses the findings of cdk-nag that are intended, each with its
// reason. Wildcards are suppressed one form at a time, so that a new one is still found.
func (r *relay) suppressFindings() {
	s := r.settings
	for _, route := range []string{"$connect", "$default", "$disconnect"} {
		suppress(r.api.Node().FindChild(str(route+"-Route")), "AwsSolutions-APIG4",
			"Any client may connect. Each dialect authenticates it: by the header of the upgrade, or by the first signed frame, before which nothing is relayed.")
	}
	for _, name := range []string{"connect", "message", "sweeper"} {
		suppress(r.functions[name].role, "AwsSolutions-IAM5",
			"The ids of connections are made by API Gateway. The wildcard covers the connections of this stage alone.",
			regex(`Resource::arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<Api[0-9A-F]+>\/`+stageName+`\/(POST|DELETE|GET)\/@connections\/\*`))
	}
	if s.snsIOS != "" || s.snsAndroid != "" {
		suppress(r.functions["sweeper"].role, "AwsSolutions-IAM5",
			"The ids of endpoints are made by SNS. The wildcard covers the endpoints of one platform application.",
			regex(`Resource::arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]+:endpoint\/[A-Z_]+\/[A-Za-z0-9_.-]+\/\*`))
	}
	if r.loggingRole != nil {
		suppress(r.loggingRole, "AwsSolutions-IAM4",
			"API Gateway asks for this policy of AWS: the role is a setting of the region and serves all its APIs.",
			"Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs")
	}
	if !s.accessLog {
		suppress(r.stage, "AwsSolutions-APIG1", "The operator has turned the access log off.")
		if r.httpStage != nil {
			suppress(r.httpStage, "AwsSolutions-APIG1", "The operator has turned the access log off.")
		}
	}
	if s.edge {
		r.suppressEdgeFindings()
	}
	if r.frontSecret != nil {
		suppress(r.frontSecret, "AwsSolutions-SMG4",
			"Fronts and functions read it again every five minutes, so a new one has to be there beside the old one for a while. docs/operations.md says how to replace it.")
	}
	if s.binaryFront {
		r.suppressBinaryFindings()
	}
}

func (r *relay) suppressEdgeFindings() {
	suppress(r.http, "AwsSolutions-APIG4",
		"A device shows its token to functions/connect, which knows a hash of it. Only a claim comes without: it is what fixes the token.")
	suppress(r.origin, "AwsSolutions-SMG4",
		"CloudFront has a copy, so a rotation by clock would cut off the edge. docs/operations.md says how to rotate it; what it guards is which client address is believed.")
	suppress(r.edge, "AwsSolutions-CFR1", "Phones travel: no country is left out.")
	suppress(r.edge, "AwsSolutions-CFR2", "A web ACL costs more than everything else here. The relay limits connections and frames per address itself.")
	suppress(r.edge, "AwsSolutions-CFR3", "The log of CloudFront holds addresses and query strings, where dialects carry tokens. API Gateway's access log has a line for each request.")
	if r.settings.domain == "" {
		suppress(r.edge, "AwsSolutions-CFR4", "With the certificate of cloudfront.net the protocol cannot be chosen. With a domain it is TLS 1.2 or later.")
	}
}

func (r *relay) suppressBinaryFindings() {
	child := func(id string) constructs.IConstruct { return r.Node().FindChild(&id) }
	suppress(child("BinaryNetwork"), "AwsSolutions-VPC7", "A flow log holds the addresses of all clients. There is one task in this network, and it has a log.")
	suppress(child("BinaryBalancerGroup"), "AwsSolutions-EC23", "Clients come from anywhere. So do functions, which belong to no network and show a secret.")
	suppress(child("BinaryStartRole"), "AwsSolutions-IAM5", "A token to read images belongs to no repository.", "Resource::*")
	suppress(child("BinaryTask"), "AwsSolutions-ECS2", "No variable is a secret: those are named by their ARN, which a test watches.")
	suppress(child("BinaryCluster"), "AwsSolutions-ECS4", "One task. Its insights would cost more than the task.")
	suppress(child("BinaryBalancer"), "AwsSolutions-ELB2", "The log of the load balancer holds addresses and paths. The functions log what happens to connections.")
}

// regex matches one form of a finding, from its beginning to its end.
func regex(pattern string) *cdknag.RegexAppliesTo {
	return &cdknag.RegexAppliesTo{Regex: str("/^" + pattern + "$/")}
}

// suppress suppresses one finding, or without appliesTo a whole rule.
func suppress(c constructs.IConstruct, id, reason string, appliesTo ...any) {
	s := &cdknag.NagPackSuppression{Id: str(id), Reason: str(reason)}
	if appliesTo != nil {
		s.AppliesTo = &appliesTo
	}
	cdknag.NagSuppressions_AddResourceSuppressions(c, &[]*cdknag.NagPackSuppression{s}, jsii.Bool(true))
}
