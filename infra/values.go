//go:build cdk

package main

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
)

// form is what the text of a setting has to look like.
type form struct {
	*regexp.Regexp
	name string
}

func newForm(name, pattern string) form {
	return form{regexp.MustCompile(`^(?:` + pattern + `)$`), name}
}

var (
	stackNames   = newForm("stack name", `[A-Za-z][A-Za-z0-9-]{0,127}`)
	domains      = newForm("host name such as relay.example.org", `(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]`)
	paths        = newForm("path such as /v1/ws", `(?:/[A-Za-z0-9._~-]+)+`)
	certificates = newForm("ARN of a certificate", `arn:[a-z-]+:acm:[a-z0-9-]+:\d{12}:certificate/[A-Za-z0-9-]+`)
	zones        = newForm("id of a hosted zone", `Z[A-Z0-9]+`)
	levels       = newForm("log level: debug, info, warn or error", `debug|info|warn|error`)
	secrets      = newForm("ARN of a secret", `arn:[a-z-]+:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}`)
	tables       = newForm("name of a table", `[A-Za-z0-9_.-]{3,255}`)
	emails       = newForm("mail address", `[^@\s]+@[^@\s]+`)
	topics       = newForm("ARN of a topic", `arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]+`)
	lines        = newForm("line of at most 200 characters", `[^\p{Cc}]{1,200}`)

	platformIOS     = newForm("ARN of a platform application for APNS", platformPattern("APNS|APNS_SANDBOX"))
	platformAndroid = newForm("ARN of a platform application for GCM", platformPattern("GCM"))
)

func platformPattern(kinds string) string {
	return `arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:app/(?:` + kinds + `)/[A-Za-z0-9_.-]+`
}

func into(field func(*settings) *string, f form) func(*settings, string) error {
	return func(s *settings, value string) error {
		if !f.MatchString(value) {
			return errors.New("is no " + f.name)
		}
		*field(s) = value
		return nil
	}
}

func flag(field func(*settings) *bool) func(*settings, string) error {
	return func(s *settings, value string) error {
		b, err := strconv.ParseBool(value)
		if err != nil {
			return errors.New("is neither true nor false")
		}
		*field(s) = b
		return nil
	}
}

func number(least, most int, set func(*settings, int)) func(*settings, string) error {
	return func(s *settings, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return errors.New("is not a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most))
		}
		set(s, n)
		return nil
	}
}

// retentions are the times that CloudWatch offers, and that make sense here.
var retentions = map[string]awslogs.RetentionDays{
	"1": awslogs.RetentionDays_ONE_DAY, "3": awslogs.RetentionDays_THREE_DAYS, "5": awslogs.RetentionDays_FIVE_DAYS,
	"7": awslogs.RetentionDays_ONE_WEEK, "14": awslogs.RetentionDays_TWO_WEEKS, "30": awslogs.RetentionDays_ONE_MONTH,
	"60": awslogs.RetentionDays_TWO_MONTHS, "90": awslogs.RetentionDays_THREE_MONTHS, "120": awslogs.RetentionDays_FOUR_MONTHS,
	"150": awslogs.RetentionDays_FIVE_MONTHS, "180": awslogs.RetentionDays_SIX_MONTHS, "365": awslogs.RetentionDays_ONE_YEAR,
}

func readRetention(s *settings, value string) error {
	days, ok := retentions[value]
	if !ok {
		return errors.New("is none of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365")
	}
	s.logRetention = days
	return nil
}

// alarmSet says which alarms are made.
type alarmSet string

const (
	noAlarms  alarmSet = "none"
	fewAlarms alarmSet = "few" // what a deployment of one household has to know
	allAlarms alarmSet = "all"
)

func readAlarms(s *settings, value string) error {
	switch a := alarmSet(value); a {
	case noAlarms, fewAlarms, allAlarms:
		s.alarms = a
		return nil
	default:
		return errors.New("is none of none, few, all")
	}
}

// readFronts takes addresses; what they have to look like the functions know.
func readFronts(s *settings, value string) error {
	s.fronts = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

func readBinaryPaths(s *settings, value string) error {
	if value != "aelos" && value != "all" {
		return errors.New("is neither aelos nor all")
	}
	s.binaryAll = value == "all"
	return nil
}

// limit is a limit of the relay: a setting here, a flag of `blindpost serve`, and a
// variable of the functions, by one name. What it has to look like the functions
// know (see checkFunctions).
type limit string

var limits = []limit{
	"max-frame", "max-live-frame", "challenge-timeout", "mailbox-cap", "message-ttl", "namespace-ttl",
	"connections-per-ip", "messages-per-minute", "control-frames-per-minute",
	"pairing-ttl", "pairing-ttl-max", "conn-record-ttl",
	"agentknock-client-exchanges-per-minute", "agentknock-device-exchanges-per-minute",
	"agentknock-client-open-exchanges", "agentknock-device-open-exchanges",
	"agentknock-client-stored-bytes", "agentknock-device-stored-bytes", "agentknock-frames-per-minute",
	"agentknock-exchange-ttl", "agentknock-recovery-ttl", "agentknock-pairing-ttl", "agentknock-wake-interval",
	"aelos-max-frame", "aelos-max-viewers", "aelos-hello-timeout", "aelos-clock-leeway",
	"aelos-boat-frames-per-minute", "aelos-viewer-frames-per-minute", "aelos-commands-per-minute",
	"aelos-command-bytes-per-minute", "aelos-max-handshake", "aelos-handshakes-per-minute",
	"aelos-max-viewers-per-user", "aelos-max-token-life",
}

func (l limit) variable() string {
	return "BLINDPOST_" + strings.ToUpper(strings.ReplaceAll(string(l), "-", "_"))
}
