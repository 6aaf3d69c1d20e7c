//go:build cdk

package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"

	"blindpost/shared/dialect/agentknock/attest"
)

// settings is what a deployment can choose. See contextKeys for each.
type settings struct {
	stackName string

	domain, certificateARN, hostedZoneID, hostedZoneName string
	edge                                                 bool
	defaultPath                                          string

	deletionProtection, pointInTimeRecovery bool
	tableName                               string // "": the one that the stack makes

	throttleRate, throttleBurst int
	reserved                    map[string]int // by function; absent: nothing reserved
	maxConcurrency              map[string]int // by function; absent: no limit

	logLevel     string
	logRetention awslogs.RetentionDays
	accessLog    bool
	loggingRole  bool

	alarms              alarmSet
	dashboard           bool
	alarmEmail          string
	alarmTopicARN       string
	snsIOS, snsAndroid  string
	pushTitle, pushBody string

	aelosSecretARN, aelosPath, aelosController string

	attestation      attest.Demand
	attestationRoots []byte // PEM, nil for none

	fronts []string // callback addresses of binary fronts that run elsewhere

	binaryFront                        bool
	binaryDomain, binaryCertificateARN string
	binaryAll                          bool // else Aelos only
	binaryCPU, binaryMemory            int

	// limits holds the variables of the limits that have been set. The functions know
	// the defaults of the others.
	limits map[string]string
}

// contextKey is one setting: key, default and meaning are what README.md says.
type contextKey struct {
	name, def string
	read      func(s *settings, value string) error
}

// contextKeys are all settings but the limits.
var contextKeys = []contextKey{
	{"stack-name", "Blindpost", into(func(s *settings) *string { return &s.stackName }, stackNames)},

	{"edge", "false", flag(func(s *settings) *bool { return &s.edge })},
	{"default-path", "", into(func(s *settings) *string { return &s.defaultPath }, paths)},
	{"domain", "", into(func(s *settings) *string { return &s.domain }, domains)},
	{"certificate-arn", "", into(func(s *settings) *string { return &s.certificateARN }, certificates)},
	{"hosted-zone-id", "", into(func(s *settings) *string { return &s.hostedZoneID }, zones)},
	{"hosted-zone-name", "", into(func(s *settings) *string { return &s.hostedZoneName }, domains)},

	{"deletion-protection", "true", flag(func(s *settings) *bool { return &s.deletionProtection })},
	{"point-in-time-recovery", "true", flag(func(s *settings) *bool { return &s.pointInTimeRecovery })},
	{"table-name", "", into(func(s *settings) *string { return &s.tableName }, tables)},

	{"throttle-rate", "500", number(1, 10_000, func(s *settings, n int) { s.throttleRate = n })},
	{"throttle-burst", "1000", number(1, 5_000, func(s *settings, n int) { s.throttleBurst = n })},
	{"reserved-connect", "", number(1, 10_000, func(s *settings, n int) { s.reserved["connect"] = n })},
	{"reserved-message", "", number(1, 10_000, func(s *settings, n int) { s.reserved["message"] = n })},
	{"reserved-disconnect", "", number(1, 10_000, func(s *settings, n int) { s.reserved["disconnect"] = n })},
	{"reserved-sweeper", "", number(1, 10_000, func(s *settings, n int) { s.reserved["sweeper"] = n })},
	{"max-concurrency-message", "", number(2, 1_000, func(s *settings, n int) { s.maxConcurrency["message"] = n })},
	{"max-concurrency-sweeper", "", number(2, 1_000, func(s *settings, n int) { s.maxConcurrency["sweeper"] = n })},

	{"log-level", "info", into(func(s *settings) *string { return &s.logLevel }, levels)},
	{"log-retention-days", "14", readRetention},
	{"access-log", "true", flag(func(s *settings) *bool { return &s.accessLog })},
	{"api-logging-role", "true", flag(func(s *settings) *bool { return &s.loggingRole })},

	{"alarms", "few", readAlarms},
	{"dashboard", "true", flag(func(s *settings) *bool { return &s.dashboard })},
	{"alarm-email", "", into(func(s *settings) *string { return &s.alarmEmail }, emails)},
	{"alarm-topic-arn", "", into(func(s *settings) *string { return &s.alarmTopicARN }, topics)},

	{"sns-ios-arn", "", into(func(s *settings) *string { return &s.snsIOS }, platformIOS)},
	{"sns-android-arn", "", into(func(s *settings) *string { return &s.snsAndroid }, platformAndroid)},
	{"push-title", "", into(func(s *settings) *string { return &s.pushTitle }, lines)},
	{"push-body", "", into(func(s *settings) *string { return &s.pushBody }, lines)},

	{"aelos-secret-arn", "", into(func(s *settings) *string { return &s.aelosSecretARN }, secrets)},
	{"aelos-path", "", into(func(s *settings) *string { return &s.aelosPath }, paths)},

	{"aelos-controller", "", into(func(s *settings) *string { return &s.aelosController }, lines)},

	{"agentknock-attestation", "off", readAttestation},
	{"agentknock-attestation-roots", "", readAttestationRoots},

	{"fronts", "", readFronts},
	{"binary-front", "false", flag(func(s *settings) *bool { return &s.binaryFront })},
	{"binary-domain", "", into(func(s *settings) *string { return &s.binaryDomain }, domains)},
	{"binary-certificate-arn", "", into(func(s *settings) *string { return &s.binaryCertificateARN }, certificates)},
	{"binary-paths", "aelos", readBinaryPaths},
	{"binary-cpu", "256", number(256, 16_384, func(s *settings, n int) { s.binaryCPU = n })},
	{"binary-memory", "512", number(512, 122_880, func(s *settings, n int) { s.binaryMemory = n })},
}
