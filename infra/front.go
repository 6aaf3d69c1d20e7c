//go:build cdk

package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsroute53"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsroute53targets"
)

// newFront makes the address that clients are given: that of CloudFront, of a
// domain of API Gateway, or API Gateway's own.
func (r *relay) newFront() {
	url := r.apiURL()
	switch {
	case r.settings.edge:
		url = r.newEdge()
	case r.settings.domain != "":
		url = r.newDomain()
	}
	r.output("Url", "WebSocket address for clients", url)
}

// newDomain puts a host name in front of the stage. Only default-path leads
// behind it: the other dialects need the edge.
func (r *relay) newDomain() string {
	domain := awsapigatewayv2.NewDomainName(r.Stack, str("Domain"), &awsapigatewayv2.DomainNameProps{
		DomainName:     str(r.settings.domain),
		Certificate:    r.certificate(),
		SecurityPolicy: awsapigatewayv2.SecurityPolicy_TLS_1_2,
	})
	awsapigatewayv2.NewApiMapping(r.Stack, str("DomainMapping"), &awsapigatewayv2.ApiMappingProps{
		Api: r.api, DomainName: domain, Stage: r.stage,
	})
	// Clients of that dialect ask for its path.
	awsapigatewayv2.NewApiMapping(r.Stack, str("PathMapping"), &awsapigatewayv2.ApiMappingProps{
		Api: r.api, DomainName: domain, Stage: r.stage, ApiMappingKey: str(strings.TrimPrefix(r.settings.defaultPath, "/")),
	})
	r.newRecords("Domain", r.settings.domain, awsroute53targets.NewApiGatewayv2DomainProperties(domain.RegionalDomainName(), domain.RegionalHostedZoneId()), false)
	r.output("DomainTarget", "what a CNAME of the domain has to name", *domain.RegionalDomainName())
	return "wss://" + r.settings.domain
}

func (r *relay) certificate() awscertificatemanager.ICertificate {
	return r.certificateOf("Certificate", r.settings.domain, r.settings.certificateARN)
}

// certificateOf is the given certificate, or a new one that is validated by the hosted zone.
func (r *relay) certificateOf(id, domain, arn string) awscertificatemanager.ICertificate {
	if arn != "" {
		return awscertificatemanager.Certificate_FromCertificateArn(r.Stack, &id, &arn)
	}
	return awscertificatemanager.NewCertificate(r.Stack, &id, &awscertificatemanager.CertificateProps{
		DomainName: &domain,
		Validation: awscertificatemanager.CertificateValidation_FromDns(r.zone),
	})
}

// newZone is the hosted zone of the settings, or nil.
func (r *relay) newZone() awsroute53.IHostedZone {
	if r.settings.hostedZoneID == "" {
		return nil
	}
	return awsroute53.HostedZone_FromHostedZoneAttributes(r.Stack, str("Zone"), &awsroute53.HostedZoneAttributes{
		HostedZoneId: str(r.settings.hostedZoneID), ZoneName: str(r.settings.hostedZoneName),
	})
}

// newRecords lets a domain lead to the target, where there is a zone for it.
func (r *relay) newRecords(id, domain string, target awsroute53.IAliasRecordTarget, ipv6 bool) {
	if r.zone == nil {
		return
	}
	awsroute53.NewARecord(r.Stack, str(id+"Record"), &awsroute53.ARecordProps{
		Zone: r.zone, RecordName: &domain, Target: awsroute53.RecordTarget_FromAlias(target),
	})
	if ipv6 {
		awsroute53.NewAaaaRecord(r.Stack, str(id+"Record6"), &awsroute53.AaaaRecordProps{
			Zone: r.zone, RecordName: &domain, Target: awsroute53.RecordTarget_FromAlias(target),
		})
	}
}
