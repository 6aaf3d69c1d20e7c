//go:build cdk

package main

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfront"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfrontorigins"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsroute53targets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"
)

var (
	//go:embed edge.js
	edgeSource string
	//go:embed edge_post.js
	edgePostSource string
)

// maxPost bounds the Content-Length of a request. The longest is a claim with the
// certificates of an attestation. functions/connect bounds requests without a length.
const maxPost = 64 << 10

// edgeCode is the function that CloudFront runs for each upgrade, edgePostCode the
// one for each request to an HTTP endpoint.
func edgeCode() string {
	return strings.NewReplacer("__PARAMETER__", pathParameter, "__STAGE__", stageName).Replace(edgeSource)
}

func edgePostCode() string {
	return strings.ReplaceAll(edgePostSource, "__LIMIT__", strconv.Itoa(maxPost))
}

// newOriginSecret makes the secret that CloudFront sends to functions/connect, which then
// trusts the client address that CloudFront reports. It is made in the account; the
// template holds only a reference.
func newOriginSecret(stack awscdk.Stack) awssecretsmanager.Secret {
	return newSecret(stack, "OriginSecret", "Blindpost: by this functions/connect knows CloudFront")
}

// newSecret makes a random secret, which no person has to know.
func newSecret(stack awscdk.Stack, id, description string) awssecretsmanager.Secret {
	return awssecretsmanager.NewSecret(stack, str(id), &awssecretsmanager.SecretProps{
		Description: str(description),
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			PasswordLength:     jsii.Number(48),
			ExcludePunctuation: jsii.Bool(true),
		},
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
}

// newEdge puts CloudFront in front: one host name, and the paths of all dialects.
// Requests at other paths than the HTTP endpoints are upgrades. It returns the address
// for clients.
func (r *relay) newEdge() string {
	upgrades := r.edgeBehavior(r.edgeOrigin(r.apiHost()), r.edgeFunction("EdgePath", "the path becomes a query parameter", edgeCode()))
	endpoints := r.edgeBehavior(r.edgeOrigin(r.httpHost()), r.edgeFunction("EdgePost", "the bounds of a request", edgePostCode()))
	endpoints.AllowedMethods = awscloudfront.AllowedMethods_ALLOW_ALL() // there is no smaller set with POST
	paths := map[string]*awscloudfront.BehaviorOptions{}
	for _, p := range posts() {
		paths[p.pattern] = endpoints
	}
	if r.binary != nil {
		frames := r.edgeBehavior(r.edgeOrigin(r.settings.binaryDomain), nil)
		for _, p := range r.settings.aelosPaths() {
			paths[p] = frames
		}
		if r.settings.binaryAll {
			upgrades = frames
		}
	}
	props := &awscloudfront.DistributionProps{
		Comment:             str("Blindpost"),
		EnableIpv6:          jsii.Bool(true),
		PriceClass:          awscloudfront.PriceClass_PRICE_CLASS_ALL,
		DefaultBehavior:     upgrades,
		AdditionalBehaviors: &paths,
	}
	if r.settings.domain != "" {
		props.DomainNames = jsii.Strings(r.settings.domain)
		props.Certificate = r.certificate()
		props.MinimumProtocolVersion = awscloudfront.SecurityPolicyProtocol_TLS_V1_2_2021
	}
	r.edge = awscloudfront.NewDistribution(r.Stack, str("Edge"), props)
	host := *r.edge.DistributionDomainName()
	r.output("EdgeUrl", "WebSocket address of CloudFront itself", "wss://"+host)
	if r.settings.domain != "" {
		r.newRecords("Domain", r.settings.domain, awsroute53targets.NewCloudFrontTarget(r.edge), true)
		r.output("DomainTarget", "what a CNAME of the domain has to name", host)
		host = r.settings.domain
	}
	r.output("HttpUrl", "address of the HTTP endpoints of Agentknock", "https://"+host)
	return "wss://" + host
}

// edgeOrigin is an origin of CloudFront, to which CloudFront sends the secret.
func (r *relay) edgeOrigin(host string) awscloudfront.IOrigin {
	return awscloudfrontorigins.NewHttpOrigin(&host, &awscloudfrontorigins.HttpOriginProps{
		ProtocolPolicy:     awscloudfront.OriginProtocolPolicy_HTTPS_ONLY,
		OriginSslProtocols: &[]awscloudfront.OriginSslPolicy{awscloudfront.OriginSslPolicy_TLS_V1_2},
		CustomHeaders: &map[string]*string{
			originSecretHeader: r.origin.SecretValue().UnsafeUnwrap(), // a reference, resolved by CloudFormation
		},
	})
}

func (r *relay) edgeFunction(id, what, code string) awscloudfront.Function {
	return awscloudfront.NewFunction(r.Stack, str(id), &awscloudfront.FunctionProps{
		Comment: str("Blindpost: " + what),
		Code:    awscloudfront.FunctionCode_FromInline(&code),
		Runtime: awscloudfront.FunctionRuntime_JS_2_0(),
	})
}

// edgeBehavior is how CloudFront treats a path: it caches nothing, and passes on all
// that a client sends.
func (r *relay) edgeBehavior(origin awscloudfront.IOrigin, function awscloudfront.Function) *awscloudfront.BehaviorOptions {
	b := &awscloudfront.BehaviorOptions{
		Origin:         origin,
		AllowedMethods: awscloudfront.AllowedMethods_ALLOW_GET_HEAD(),
		CachePolicy:    awscloudfront.CachePolicy_CACHING_DISABLED(),
		// Sec-WebSocket-* and Authorization included, but not Host, by which API Gateway
		// finds the API.
		OriginRequestPolicy:  awscloudfront.OriginRequestPolicy_ALL_VIEWER_EXCEPT_HOST_HEADER(),
		ViewerProtocolPolicy: awscloudfront.ViewerProtocolPolicy_HTTPS_ONLY,
		Compress:             jsii.Bool(false),
	}
	if function != nil {
		b.FunctionAssociations = &[]*awscloudfront.FunctionAssociation{{
			EventType: awscloudfront.FunctionEventType_VIEWER_REQUEST, Function: function,
		}}
	}
	return b
}
