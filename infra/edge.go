//go:build cdk

package main

import (
	_ "embed"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfront"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfrontorigins"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsroute53targets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"
)

//go:embed edge.js
var edgeSource string

// edgeCode is the function that CloudFront runs for each request of a client.
func edgeCode() string {
	return strings.NewReplacer("__PARAMETER__", pathParameter, "__STAGE__", stageName).Replace(edgeSource)
}

// newOriginSecret makes what CloudFront shows to functions/connect, so that it believes
// the address that CloudFront says a client has. It is made in the account, and is in the
// template by its name only.
func newOriginSecret(stack awscdk.Stack) awssecretsmanager.Secret {
	return awssecretsmanager.NewSecret(stack, str("OriginSecret"), &awssecretsmanager.SecretProps{
		Description: str("Blindpost: by this functions/connect knows CloudFront"),
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			PasswordLength:     jsii.Number(48),
			ExcludePunctuation: jsii.Bool(true),
		},
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
}

// newEdge puts CloudFront in front: one host name, and any path. It returns the
// address for clients.
func (r *relay) newEdge() string {
	rewrite := awscloudfront.NewFunction(r.Stack, str("EdgePath"), &awscloudfront.FunctionProps{
		Comment: str("Blindpost: the path becomes a query parameter"),
		Code:    awscloudfront.FunctionCode_FromInline(str(edgeCode())),
		Runtime: awscloudfront.FunctionRuntime_JS_2_0(),
	})
	origin := awscloudfrontorigins.NewHttpOrigin(str(r.apiHost()), &awscloudfrontorigins.HttpOriginProps{
		ProtocolPolicy:     awscloudfront.OriginProtocolPolicy_HTTPS_ONLY,
		OriginSslProtocols: &[]awscloudfront.OriginSslPolicy{awscloudfront.OriginSslPolicy_TLS_V1_2},
		CustomHeaders: &map[string]*string{
			originSecretHeader: r.origin.SecretValue().UnsafeUnwrap(), // a reference, resolved by CloudFormation
		},
	})
	props := &awscloudfront.DistributionProps{
		Comment:    str("Blindpost"),
		EnableIpv6: jsii.Bool(true),
		PriceClass: awscloudfront.PriceClass_PRICE_CLASS_ALL,
		DefaultBehavior: &awscloudfront.BehaviorOptions{
			Origin:         origin,
			AllowedMethods: awscloudfront.AllowedMethods_ALLOW_GET_HEAD(),
			CachePolicy:    awscloudfront.CachePolicy_CACHING_DISABLED(),
			// All of what a client sends, Sec-WebSocket-* and Authorization included, but for
			// Host, by which API Gateway finds the API.
			OriginRequestPolicy:  awscloudfront.OriginRequestPolicy_ALL_VIEWER_EXCEPT_HOST_HEADER(),
			ViewerProtocolPolicy: awscloudfront.ViewerProtocolPolicy_HTTPS_ONLY,
			Compress:             jsii.Bool(false),
			FunctionAssociations: &[]*awscloudfront.FunctionAssociation{{
				EventType: awscloudfront.FunctionEventType_VIEWER_REQUEST,
				Function:  rewrite,
			}},
		},
	}
	if r.settings.domain != "" {
		props.DomainNames = jsii.Strings(r.settings.domain)
		props.Certificate = r.certificate()
		props.MinimumProtocolVersion = awscloudfront.SecurityPolicyProtocol_TLS_V1_2_2021
	}
	r.edge = awscloudfront.NewDistribution(r.Stack, str("Edge"), props)
	host := *r.edge.DistributionDomainName()
	r.output("EdgeUrl", "WebSocket address of CloudFront itself", "wss://"+host)
	if r.settings.domain == "" {
		return "wss://" + host
	}
	r.newRecords(awsroute53targets.NewCloudFrontTarget(r.edge), true)
	return "wss://" + r.settings.domain
}
