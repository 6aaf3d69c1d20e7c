//go:build cdk

package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"

	"blindpost/shared/dialect/agentknock/attest"
	declared "blindpost/shared/settings"
)

// settings are the choices of a deployment. Each is declared in shared/settings.
type settings struct {
	// values are all settings, also those that only the functions read.
	values declared.Values

	stackName string

	domain, certificateARN, hostedZoneID, hostedZoneName string
	edge                                                 bool
	defaultPath                                          string

	deletionProtection, pointInTimeRecovery bool
	tableName                               string // "": the one that the stack makes

	throttleRate, throttleBurst int
	reserved                    map[string]int // by function; absent: nothing reserved
	maxConcurrency              map[string]int // by function; absent: no limit

	logRetention awslogs.RetentionDays
	accessLog    bool
	loggingRole  bool

	alarms             alarmSet
	dashboard          bool
	alarmEmail         string
	alarmTopicARN      string
	snsIOS, snsAndroid string

	aelosSecretARN, aelosPath string

	attestation      attest.Demand
	attestationRoots []byte // PEM, nil for none

	fronts []string // callback addresses of binary fronts that run elsewhere

	binaryFront                        bool
	binaryDomain, binaryCertificateARN string
	binaryAll                          bool // else Aelos only
	binaryCPU, binaryMemory            int
}

// alarmSet says which alarms are made.
type alarmSet string

const (
	noAlarms  alarmSet = "none"
	fewAlarms alarmSet = "few" // enough for one household
	allAlarms alarmSet = "all"
)

// retentions are the useful ones of the times that CloudWatch offers.
var retentions = map[string]awslogs.RetentionDays{
	"1": awslogs.RetentionDays_ONE_DAY, "3": awslogs.RetentionDays_THREE_DAYS, "5": awslogs.RetentionDays_FIVE_DAYS,
	"7": awslogs.RetentionDays_ONE_WEEK, "14": awslogs.RetentionDays_TWO_WEEKS, "30": awslogs.RetentionDays_ONE_MONTH,
	"60": awslogs.RetentionDays_TWO_MONTHS, "90": awslogs.RetentionDays_THREE_MONTHS, "120": awslogs.RetentionDays_FOUR_MONTHS,
	"150": awslogs.RetentionDays_FIVE_MONTHS, "180": awslogs.RetentionDays_SIX_MONTHS, "365": awslogs.RetentionDays_ONE_YEAR,
}

func newSettings(v declared.Values) (*settings, error) {
	s := &settings{
		values:    v,
		stackName: declared.StackName.Of(v),

		domain: declared.Domain.Of(v), certificateARN: declared.CertificateARN.Of(v),
		hostedZoneID: declared.HostedZoneID.Of(v), hostedZoneName: declared.HostedZoneName.Of(v),
		edge: declared.Edge.Of(v), defaultPath: declared.DefaultPath.Of(v),

		deletionProtection: declared.DeletionProtection.Of(v), pointInTimeRecovery: declared.PointInTimeRecovery.Of(v),
		tableName: declared.TableInUse.Of(v),

		throttleRate: int(declared.ThrottleRate.Of(v)), throttleBurst: int(declared.ThrottleBurst.Of(v)),
		reserved: chosen(declared.Reserved, v), maxConcurrency: chosen(declared.MaxConcurrency, v),

		logRetention: retentions[declared.LogRetention.Of(v)],
		accessLog:    declared.AccessLog.Of(v), loggingRole: declared.APILoggingRole.Of(v),

		alarms: alarmSet(declared.Alarms.Of(v)), dashboard: declared.Dashboard.Of(v),
		alarmEmail: declared.AlarmEmail.Of(v), alarmTopicARN: declared.AlarmTopicARN.Of(v),
		snsIOS: declared.SNSIOS.Of(v), snsAndroid: declared.SNSAndroid.Of(v),

		aelosSecretARN: declared.AelosSecretARN.Of(v), aelosPath: declared.AelosPath.Of(v),

		fronts:      declared.Fronts.Of(v),
		binaryFront: declared.BinaryFront.Of(v), binaryAll: declared.BinaryPaths.Of(v) == "all",
		binaryDomain: declared.BinaryDomain.Of(v), binaryCertificateARN: declared.BinaryCertificateARN.Of(v),
		binaryCPU: int(declared.BinaryCPU.Of(v)), binaryMemory: int(declared.BinaryMemory.Of(v)),
	}
	return s, s.readAttestation()
}

// chosen are the numbers that were set.
func chosen(keys map[string]declared.Key[int64], v declared.Values) map[string]int {
	numbers := map[string]int{}
	for function, key := range keys {
		if n := key.Of(v); n != 0 {
			numbers[function] = int(n)
		}
	}
	return numbers
}
