package wiring

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/dialect/skald"
	"blindpost/shared/push"
	"blindpost/shared/relay"
)

// Config are the settings of the functions. All functions know all of them, so
// that one environment can be given to each.
type Config struct {
	Table           string
	JobsQueueURL    string
	IngressQueueURL string
	// IngressAttempts is after how many attempts the redrive policy of the ingress
	// queue puts a message aside.
	IngressAttempts int64
	CallbackURL     string

	// Fronts are the callback addresses of our own fronts (`blindpost serve
	// --lambda`), which all know the secret that is in one of these two places.
	Fronts          []string
	FrontSecretARN  string
	FrontSecretFile string

	OriginSecretARN    string
	OriginSecretHeader string
	PathParameter      string
	DefaultPath        string

	SNSIOS     string
	SNSAndroid string
	PushText   push.Text

	ConnRecordTTL time.Duration
	LogLevel      slog.Level
	Relay         relay.Limits
	Skald         skald.Limits
	Agentknock    agentknock.Limits
	Attestation   Attestation
	Aelos         Aelos
}

// defaults are the settings of someone who says nothing. The limits are those of
// the specifications.
func defaults() Config {
	return Config{
		IngressAttempts:    5,
		OriginSecretHeader: "X-Origin-Secret",
		PathParameter:      "p",
		DefaultPath:        skald.Path,
		PushText:           push.Text{Title: "Skald", Body: "Action required"},
		// A connection of API Gateway lives for two hours at most.
		ConnRecordTTL: 2*time.Hour + 10*time.Minute,
		Relay: relay.Limits{
			MailboxCap:        200,
			MessageTTL:        7 * 24 * time.Hour,
			ConnectionsPerIP:  30,
			MessagesPerMinute: 60,
			ControlPerMinute:  60,
		},
		Skald:      skald.DefaultLimits(),
		Agentknock: agentknock.DefaultLimits(),
		Aelos:      Aelos{Controller: aelos.DefaultController.String(), Limits: aelos.DefaultLimits()},
	}
}

const envPrefix = "BLINDPOST_"

// setting is one environment variable, without the prefix of its name.
type setting struct {
	name  string
	usage string
	set   func(string) error
}

// settings are all variables. None is a secret: those come from Secrets Manager.
func (c *Config) settings() []setting {
	all := []setting{
		{"TABLE", "name or ARN of the DynamoDB table", text(&c.Table)},
		{"JOBS_QUEUE_URL", "URL of the standard queue for jobs", text(&c.JobsQueueURL)},
		{"INGRESS_QUEUE_URL", "URL of the FIFO queue for frames, the ends of connections, and their jobs; empty if the front keeps the order of frames itself and calls the functions message and disconnect directly", text(&c.IngressQueueURL)},
		{"INGRESS_ATTEMPTS", "maxReceiveCount of the FIFO queue", count(&c.IngressAttempts)},
		{"CALLBACK_URL", "address that takes calls about connections, https://{api}.execute-api.{region}.amazonaws.com/{stage}; empty to take it from each event, which is wrong with a custom domain", text(&c.CallbackURL)},

		{"FRONTS", "callback addresses of `blindpost serve --lambda`, separated by commas; no other address is called, but for API Gateway", list(&c.Fronts)},
		{"FRONT_SECRET_ARN", "secret that those fronts want to be shown", text(&c.FrontSecretARN)},
		{"FRONT_SECRET_FILE", "file with that secret, where there is no Secrets Manager; FRONT_SECRET_ARN wins", text(&c.FrontSecretFile)},

		{"ORIGIN_SECRET_ARN", "secret of which CloudFront sends one word in a header; only with it the client's address is taken from X-Forwarded-For", text(&c.OriginSecretARN)},
		{"ORIGIN_SECRET_HEADER", "that header", text(&c.OriginSecretHeader)},
		{"PATH_PARAMETER", "query parameter in which CloudFront puts the path", text(&c.PathParameter)},
		{"DEFAULT_PATH", "path of a request without it", text(&c.DefaultPath)},

		{"SNS_IOS_ARN", "platform application for APNs; without it those pushes are only logged", text(&c.SNSIOS)},
		{"SNS_ANDROID_ARN", "platform application for FCM; without it those pushes are only logged", text(&c.SNSAndroid)},
		{"PUSH_TITLE", "title of every push", text(&c.PushText.Title)},
		{"PUSH_BODY", "text of every push", text(&c.PushText.Body)},

		{"CONN_RECORD_TTL", "time after which the record of a connection is forgotten", duration(&c.ConnRecordTTL)},
		{"LOG_LEVEL", "debug, info, warn or error", level(&c.LogLevel)},

		{"MAX_FRAME", "largest frame in bytes, but for live messages", size(&c.Skald.MaxFrame)},
		{"MAX_LIVE_FRAME", "largest frame in bytes of a live message", size(&c.Skald.MaxLiveFrame)},
		{"CHALLENGE_TIMEOUT", "time to authenticate", duration(&c.Skald.ChallengeTimeout)},
		{"MAILBOX_CAP", "messages that wait for one recipient; 0: no limit", count(&c.Relay.MailboxCap)},
		{"MESSAGE_TTL", "time that a message waits before it is dropped", duration(&c.Relay.MessageTTL)},
		{"NAMESPACE_TTL", "time that a namespace lives without any connection; 0: for ever", duration(&c.Skald.NamespaceTTL)},
		{"CONNECTIONS_PER_IP", "connections a minute from one address; 0: no limit", count(&c.Relay.ConnectionsPerIP)},
		{"MESSAGES_PER_MINUTE", "messages a minute on one connection; 0: no limit", count(&c.Relay.MessagesPerMinute)},
		{"CONTROL_FRAMES_PER_MINUTE", "other frames a minute on one connection; 0: no limit", count(&c.Relay.ControlPerMinute)},
		{"PAIRING_TTL", "time that a pairing window is open if the agent does not say", duration(&c.Skald.PairingTTL)},
		{"PAIRING_TTL_MAX", "longest time that a pairing window is open", duration(&c.Skald.PairingTTLMax)},
	}
	return slices.Concat(all, c.agentknockSettings(), c.Aelos.settings())
}

// Variables lists the names of all environment variables.
func Variables() []string {
	var c Config
	var names []string
	for _, s := range c.settings() {
		names = append(names, envPrefix+s.name)
	}
	return names
}

// Load reads the settings of a function from its environment, as os.Environ lists
// it. A variable that is set to nothing counts as not set. The error names all
// that is wrong.
func Load(environ []string, f Function) (Config, error) {
	c := defaults()
	known := map[string]setting{}
	for _, s := range c.settings() {
		known[envPrefix+s.name] = s
	}
	var errs []error
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, envPrefix) || value == "" {
			continue
		}
		s, ok := known[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: there is no such setting", name))
			continue
		}
		if err := s.set(value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w (%s)", name, value, err, s.usage))
		}
	}
	if err := errors.Join(append(errs, c.check(f))...); err != nil {
		return Config{}, fmt.Errorf("failed to read the settings: %w", err)
	}
	return c, nil
}
