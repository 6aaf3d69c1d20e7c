//go:build cdk

package main

import (
	"errors"
	"fmt"
	"strings"

	"blindpost/functions"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/remote/invoke"
	declared "blindpost/shared/settings"
)

// complaints collects the contradictions among settings.
type complaints []error

func (c *complaints) add(format string, args ...any) { *c = append(*c, fmt.Errorf(format, args...)) }

// check finds settings that contradict each other.
func (s *settings) check() error {
	var c complaints
	s.checkDomain(&c)
	s.checkBinaryFront(&c)
	s.checkAlarms(&c)
	s.checkAttestation(&c)
	s.checkFunctions(&c)
	return errors.Join(c...)
}

func (s *settings) checkDomain(c *complaints) {
	zone := s.hostedZoneID != ""
	if zone != (s.hostedZoneName != "") {
		c.add("blindpost:hosted-zone-id and blindpost:hosted-zone-name belong together")
	}
	if s.domain == "" {
		if s.certificateARN != "" {
			c.add("blindpost:certificate-arn is of no use without blindpost:domain")
		}
		if zone && s.binaryDomain == "" {
			c.add("blindpost:hosted-zone-id is of no use without blindpost:domain")
		}
		return
	}
	if zone && !s.inZone(s.domain) {
		c.add("blindpost:domain is not in blindpost:hosted-zone-name")
	}
	switch {
	case s.edge && !strings.HasPrefix(s.certificateARN, "arn:aws:acm:us-east-1:"):
		c.add("blindpost:domain with blindpost:edge needs a blindpost:certificate-arn of us-east-1: CloudFront takes no other")
	case s.certificateARN == "" && !zone:
		c.add("blindpost:domain needs a blindpost:certificate-arn, or a hosted zone in which a certificate can be validated")
	}
}

func (s *settings) inZone(domain string) bool {
	return domain == s.hostedZoneName || strings.HasSuffix(domain, "."+s.hostedZoneName)
}

// memories are the least and the most memory, in MB, that Fargate gives to an amount of
// processor.
var memories = map[int][2]int{256: {512, 2_048}, 512: {1_024, 4_096}, 1_024: {2_048, 8_192}, 2_048: {4_096, 16_384}, 4_096: {8_192, 30_720}}

func (s *settings) checkBinaryFront(c *complaints) {
	if s.aelosSecretARN == "" && (s.aelosPath != "" || s.values.IsSet(declared.AelosController)) {
		c.add("blindpost:aelos-path and blindpost:aelos-controller are of no use without blindpost:aelos-secret-arn")
	}
	if s.aelosSecretARN != "" && s.allFronts() == nil && !s.edge {
		c.add("blindpost:aelos-secret-arn needs blindpost:binary-front or blindpost:fronts, for Aelos has binary frames, which API Gateway refuses; or blindpost:edge, for peers that send base64 text")
	}
	if !s.binaryFront {
		if s.binaryDomain != "" || s.binaryCertificateARN != "" {
			c.add("blindpost:binary-domain and blindpost:binary-certificate-arn are of no use without blindpost:binary-front")
		}
		return
	}
	zone := s.hostedZoneID != ""
	switch {
	case s.binaryDomain == "":
		c.add("blindpost:binary-front needs a blindpost:binary-domain: the functions reach it by that name, over TLS")
	case s.binaryDomain == s.domain:
		c.add("blindpost:binary-domain and blindpost:domain lead to different places: they cannot be the same name")
	case zone && !s.inZone(s.binaryDomain):
		c.add("blindpost:binary-domain is not in blindpost:hosted-zone-name")
	case s.binaryCertificateARN == "" && !zone:
		c.add("blindpost:binary-domain needs a blindpost:binary-certificate-arn, or a hosted zone in which a certificate can be validated")
	}
	if m, ok := memories[s.binaryCPU]; !ok || s.binaryMemory < m[0] || s.binaryMemory > m[1] || s.binaryMemory%512 != 0 || (s.binaryMemory != 512 && s.binaryMemory%1_024 != 0) {
		c.add("blindpost:binary-cpu and blindpost:binary-memory: Fargate has no task of %d and %d MB; it has 256 with 512, 1024 or 2048 MB, 512 with 1024 to 4096, 1024 with 2048 to 8192, 2048 with 4096 to 16384, 4096 with 8192 to 30720",
			s.binaryCPU, s.binaryMemory)
	}
}

func (s *settings) checkAlarms(c *complaints) {
	if s.alarmEmail != "" && s.alarmTopicARN != "" {
		c.add("blindpost:alarm-email and blindpost:alarm-topic-arn exclude each other")
	}
	if s.alarms == noAlarms && (s.alarmEmail != "" || s.alarmTopicARN != "") {
		c.add("blindpost:alarm-email and blindpost:alarm-topic-arn are of no use without blindpost:alarms")
	}
}

// samples stand for addresses that are not known before the deployment, so that
// functions.Check can check all other settings.
var samples = addresses{
	table:        "table",
	ingress:      "https://sqs.eu-central-1.amazonaws.com/123456789012/ingress.fifo",
	jobs:         "https://sqs.eu-central-1.amazonaws.com/123456789012/jobs",
	callback:     "https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/" + stageName,
	originSecret: "arn:aws:secretsmanager:eu-central-1:123456789012:secret:origin-AbCdEf",
	frontSecret:  "arn:aws:secretsmanager:eu-central-1:123456789012:secret:front-AbCdEf",
}

// checkFunctions runs the functions' own check, so that settings that they would refuse
// at their start are never deployed.
func (s *settings) checkFunctions(c *complaints) {
	said := map[string]bool{}
	for _, name := range functionNames {
		v := declared.For(declared.Functions, contextKey)
		errs := []error{}
		for setting, text := range s.told(name, samples) {
			errs = append(errs, v.Set("", contextKey, setting, text))
		}
		err := errors.Join(append(errs, functions.Check(v, readers[name]))...)
		if err != nil && !said[err.Error()] {
			said[err.Error()] = true
			c.add("%w", err)
		}
		if err == nil && name == "connect" {
			s.checkCarried(c, v, declared.MaxFrame)
			s.checkCarried(c, v, declared.MaxLiveFrame)
		}
	}
}

// checkCarried refuses a limit above what the fronts carry: API Gateway would end the
// connection of a peer that makes use of it.
func (s *settings) checkCarried(c *complaints, v declared.Values, key declared.Key[int64]) {
	bytes := key.Of(v)
	if bytes > invoke.MaxFrame {
		*c = append(*c, v.Wrong(key, "a call of a function carries frames of %d bytes at most", invoke.MaxFrame))
	}
	if bytes > functions.MaxFrame && s.allFronts() == nil {
		*c = append(*c, v.Wrong(key, "API Gateway carries messages of %d KB, which in base64 is a frame of %d bytes (%d KiB): set no more, or have blindpost:binary-front or blindpost:fronts, which carry more",
			apigw.MaxMessage>>10, functions.MaxFrame, functions.MaxFrame>>10))
	}
}
