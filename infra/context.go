//go:build cdk

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
)

// contextPrefix is in front of every key of ours in the context of the CDK, which
// it shares with feature flags and cached look-ups. What begins with it and is
// unknown is an error, so that a typing mistake does not go unnoticed.
const contextPrefix = "blindpost:"

// settings is what a deployment can choose. See contextKeys for each.
type settings struct {
	stackName string

	domain, certificateARN, hostedZoneID, hostedZoneName string
	edge                                                 bool
	defaultPath                                          string

	deletionProtection, pointInTimeRecovery bool

	throttleRate, throttleBurst int
	reserved                    map[string]int // by function; absent: nothing reserved
	maxConcurrency              map[string]int // by function; absent: no limit

	logLevel     string
	logRetention awslogs.RetentionDays
	accessLog    bool
	loggingRole  bool

	alarms, dashboard   bool
	alarmEmail          string
	alarmTopicARN       string
	snsIOS, snsAndroid  string
	pushTitle, pushBody string

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

	{"alarms", "true", flag(func(s *settings) *bool { return &s.alarms })},
	{"dashboard", "true", flag(func(s *settings) *bool { return &s.dashboard })},
	{"alarm-email", "", into(func(s *settings) *string { return &s.alarmEmail }, emails)},
	{"alarm-topic-arn", "", into(func(s *settings) *string { return &s.alarmTopicARN }, topics)},

	{"sns-ios-arn", "", into(func(s *settings) *string { return &s.snsIOS }, platformIOS)},
	{"sns-android-arn", "", into(func(s *settings) *string { return &s.snsAndroid }, platformAndroid)},
	{"push-title", "", into(func(s *settings) *string { return &s.pushTitle }, lines)},
	{"push-body", "", into(func(s *settings) *string { return &s.pushBody }, lines)},
}

// readContext reads the settings out of the whole context of an app.
func readContext(context any) (*settings, error) {
	given := map[string]string{}
	all, ok := context.(map[string]any)
	if !ok && context != nil {
		return nil, fmt.Errorf("failed to read the context: it is a %T", context)
	}
	var errs []error
	for name, v := range all {
		short, ours := strings.CutPrefix(name, contextPrefix)
		if !ours {
			continue
		}
		text, err := contextText(v)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		given[short] = text
	}
	s := &settings{reserved: map[string]int{}, maxConcurrency: map[string]int{}, limits: map[string]string{}}
	for _, k := range contextKeys {
		value, set := given[k.name]
		delete(given, k.name)
		if !set || value == "" {
			value = k.def
		}
		if value == "" {
			continue
		}
		if err := k.read(s, value); err != nil {
			errs = append(errs, fmt.Errorf("%s%s: %q %w", contextPrefix, k.name, value, err))
		}
	}
	for _, l := range limits {
		value := given[l.name]
		delete(given, l.name)
		if value == "" {
			continue
		}
		if !l.form.MatchString(value) {
			errs = append(errs, fmt.Errorf("%s%s: %q is no %s", contextPrefix, l.name, value, l.form.name))
		}
		s.limits[l.variable()] = value
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		errs = append(errs, fmt.Errorf("%s%s: there is no such setting (infra/README.md lists them)", contextPrefix, name))
	}
	errs = append(errs, s.check())
	return s, errors.Join(errs...)
}

// contextText takes values from cdk.json, where they can have a type, and from
// the command line, where all are text.
func contextText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	default:
		return "", errors.New("it must be text, a number, true or false")
	}
}

// check is for what no setting can tell alone.
func (s *settings) check() error {
	var errs []error
	complain := func(text string) { errs = append(errs, errors.New(text)) }
	zone := s.hostedZoneID != ""
	if zone != (s.hostedZoneName != "") {
		complain("blindpost:hosted-zone-id and blindpost:hosted-zone-name belong together")
	}
	if s.domain == "" {
		if s.certificateARN != "" || zone {
			complain("blindpost:certificate-arn and blindpost:hosted-zone-id are of no use without blindpost:domain")
		}
	} else {
		if zone && s.domain != s.hostedZoneName && !strings.HasSuffix(s.domain, "."+s.hostedZoneName) {
			complain("blindpost:domain is not in blindpost:hosted-zone-name")
		}
		switch {
		case s.edge && !strings.HasPrefix(s.certificateARN, "arn:aws:acm:us-east-1:"):
			complain("blindpost:domain with blindpost:edge needs a blindpost:certificate-arn of us-east-1: CloudFront takes no other")
		case s.certificateARN == "" && !zone:
			complain("blindpost:domain needs a blindpost:certificate-arn, or a hosted zone in which a certificate can be validated")
		}
	}
	if s.alarmEmail != "" && s.alarmTopicARN != "" {
		complain("blindpost:alarm-email and blindpost:alarm-topic-arn exclude each other")
	}
	if !s.alarms && (s.alarmEmail != "" || s.alarmTopicARN != "") {
		complain("blindpost:alarm-email and blindpost:alarm-topic-arn are of no use without blindpost:alarms")
	}
	return errors.Join(errs...)
}
