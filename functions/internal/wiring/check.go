package wiring

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"blindpost/shared/gateway/apigw"
	"blindpost/shared/push/sns"
	"blindpost/shared/table"
)

// Bounds of the settings. A frame below the first might not hold an Auth with a
// long push token; above the second it would not fit into a table item.
const (
	minFrame    = 4 << 10
	maxFrame    = table.MaxItemSize - 8<<10
	maxAnyFrame = 64 << 20
	maxTTL      = 100 * 365 * 24 * time.Hour
)

// complaint says what is wrong with a setting.
func complaint(name, format string, args ...any) error {
	return fmt.Errorf(envPrefix+name+": "+format, args...)
}

// check finds settings that are missing for a function, or make no sense.
func (c *Config) check(f Function) error {
	errs := []error{c.checkAddresses(f), c.checkLimits(), c.checkAgentknock(), c.Aelos.check()}
	if _, err := sns.New(nil, sns.Options{IOS: c.SNSIOS}); err != nil {
		errs = append(errs, complaint("SNS_IOS_ARN", "%w", err))
	}
	if _, err := sns.New(nil, sns.Options{Android: c.SNSAndroid}); err != nil {
		errs = append(errs, complaint("SNS_ANDROID_ARN", "%w", err))
	}
	if err := c.PushText.Validate(); err != nil {
		errs = append(errs, complaint("PUSH_TITLE, "+envPrefix+"PUSH_BODY", "%w", err))
	}
	return errors.Join(errs...)
}

func (c *Config) checkAddresses(f Function) error {
	var errs []error
	// The end of a connection only passes through, if there is a queue for it.
	if !(f == Disconnect && c.IngressQueueURL != "") {
		if c.Table == "" {
			errs = append(errs, complaint("TABLE", "it is missing"))
		}
		if c.JobsQueueURL == "" {
			errs = append(errs, complaint("JOBS_QUEUE_URL", "it is missing"))
		}
	}
	errs = append(errs, checkQueueURL("JOBS_QUEUE_URL", c.JobsQueueURL), checkQueueURL("INGRESS_QUEUE_URL", c.IngressQueueURL))
	if c.IngressQueueURL != "" && !strings.HasSuffix(c.IngressQueueURL, ".fifo") {
		errs = append(errs, complaint("INGRESS_QUEUE_URL", "%q is not a FIFO queue", c.IngressQueueURL))
	}
	if strings.HasSuffix(c.JobsQueueURL, ".fifo") {
		errs = append(errs, complaint("JOBS_QUEUE_URL", "%q is a FIFO queue, which cannot delay a job", c.JobsQueueURL))
	}
	if c.IngressAttempts < 1 || c.IngressAttempts > 1000 {
		errs = append(errs, complaint("INGRESS_ATTEMPTS", "it must be from 1 to 1000"))
	}
	if c.CallbackURL != "" {
		if err := apigw.CheckEndpoint(c.CallbackURL); err != nil {
			errs = append(errs, complaint("CALLBACK_URL", "%w", err))
		}
	}
	errs = append(errs, c.checkFronts())
	if c.OriginSecretARN != "" && !strings.HasPrefix(c.OriginSecretARN, "arn:") {
		errs = append(errs, complaint("ORIGIN_SECRET_ARN", "it must be the ARN of a secret, not the secret itself"))
	}
	if !isHeaderName(c.OriginSecretHeader) {
		errs = append(errs, complaint("ORIGIN_SECRET_HEADER", "%q is no name of a header", c.OriginSecretHeader))
	}
	if !strings.HasPrefix(c.DefaultPath, "/") {
		errs = append(errs, complaint("DEFAULT_PATH", "%q does not begin with a slash", c.DefaultPath))
	}
	return errors.Join(errs...)
}

func (c *Config) checkFronts() error {
	var errs []error
	for _, address := range c.Fronts {
		if err := apigw.CheckFront(address); err != nil {
			errs = append(errs, complaint("FRONTS", "%q: %w", address, err))
		}
	}
	if len(c.Fronts) > 0 && c.FrontSecretARN == "" && c.FrontSecretFile == "" {
		errs = append(errs, complaint("FRONTS", "it needs FRONT_SECRET_ARN or FRONT_SECRET_FILE"))
	}
	if c.FrontSecretARN != "" && !strings.HasPrefix(c.FrontSecretARN, "arn:") {
		errs = append(errs, complaint("FRONT_SECRET_ARN", "it must be the ARN of a secret, not the secret itself"))
	}
	return errors.Join(errs...)
}

func checkQueueURL(name, v string) error {
	u, err := url.Parse(v)
	if v != "" && (err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http")) {
		return complaint(name, "%q is not the URL of a queue", v)
	}
	return nil
}

func isHeaderName(s string) bool {
	for i := range len(s) {
		letter := s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z'
		if !letter && s[i] != '-' && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return s != "" && http.CanonicalHeaderKey(s) != "X-Forwarded-For"
}

func (c *Config) checkLimits() error {
	s := c.Skald
	errs := []error{
		inRange("MAX_FRAME", s.MaxFrame, minFrame, maxFrame),
		inRange("MAX_LIVE_FRAME", s.MaxLiveFrame, minFrame, maxAnyFrame),
		inRange("CHALLENGE_TIMEOUT", s.ChallengeTimeout, time.Millisecond, maxTTL),
		inRange("MESSAGE_TTL", c.Relay.MessageTTL, time.Millisecond, maxTTL),
		inRange("NAMESPACE_TTL", s.NamespaceTTL, 0, maxTTL),
		inRange("PAIRING_TTL", s.PairingTTL, time.Second, maxTTL),
		inRange("PAIRING_TTL_MAX", s.PairingTTLMax, time.Second, maxTTL),
		// Shorter, and a connection that is still open would be unknown.
		inRange("CONN_RECORD_TTL", c.ConnRecordTTL, 2*time.Hour, maxTTL),
	}
	if s.PairingTTL%time.Second != 0 || s.PairingTTLMax%time.Second != 0 {
		errs = append(errs, complaint("PAIRING_TTL, "+envPrefix+"PAIRING_TTL_MAX", "they must be whole seconds"))
	}
	if s.PairingTTL > s.PairingTTLMax {
		errs = append(errs, complaint("PAIRING_TTL", "it is longer than %sPAIRING_TTL_MAX", envPrefix))
	}
	if s.MaxLiveFrame < s.MaxFrame {
		errs = append(errs, complaint("MAX_LIVE_FRAME", "it is smaller than %sMAX_FRAME", envPrefix))
	}
	return errors.Join(errs...)
}

func inRange[T int64 | time.Duration](name string, v, least, most T) error {
	if v < least || v > most {
		return complaint(name, "it must be from %v to %v", least, most)
	}
	return nil
}
