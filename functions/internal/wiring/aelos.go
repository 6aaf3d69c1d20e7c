package wiring

import (
	"context"
	"errors"
	"strings"
	"time"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/relay"
	"blindpost/shared/settings/secret"
)

// Aelos are the settings of that protocol. It is spoken if there is a secret.
type Aelos struct {
	SecretARN  string
	SecretFile string
	Path       string
	Controller string // see aelos.ParseController
	Limits     aelos.Limits
}

func (c *Aelos) settings() []setting {
	l := &c.Limits
	return []setting{
		{"AELOS_SECRET_ARN", "secret that the admission tokens of Aelos are signed with, during a rotation the old one and the new one, separated by white space; without it that protocol is not spoken", text(&c.SecretARN)},
		{"AELOS_SECRET_FILE", "file with that secret, where there is no Secrets Manager", text(&c.SecretFile)},
		{"AELOS_PATH", "path to speak it at, besides " + aelos.Path, text(&c.Path)},
		{"AELOS_CONTROLLER", "claim=value by which a token says that a viewer may send commands", text(&c.Controller)},
		{"AELOS_MAX_FRAME", "largest frame in bytes of Aelos", size(&l.MaxFrame)},
		{"AELOS_MAX_VIEWERS", "viewers of one boat at a time", count(&l.MaxViewers)},
		{"AELOS_HELLO_TIMEOUT", "time to say hello", duration(&l.HelloTimeout)},
		{"AELOS_CLOCK_LEEWAY", "time by which the clock of the token minter may differ", duration(&l.Leeway)},
		{"AELOS_BOAT_FRAMES_PER_MINUTE", "frames a minute of one boat; 0: no limit", count(&l.BoatFrames)},
		{"AELOS_VIEWER_FRAMES_PER_MINUTE", "frames a minute of one viewer, but for commands; 0: no limit", count(&l.ViewerFrames)},
		{"AELOS_COMMANDS_PER_MINUTE", "commands a minute of one viewer; 0: no limit", count(&l.Commands)},
		{"AELOS_COMMAND_BYTES_PER_MINUTE", "bytes of commands a minute of one user; 0: no limit", size(&l.CommandBytes)},
		{"AELOS_MAX_HANDSHAKE", "largest hs1 or hs2 in bytes; 0: as any frame", size(&l.MaxHandshake)},
		{"AELOS_HANDSHAKES_PER_MINUTE", "handshakes a minute with one boat, a quarter of them of one user; 0: no limit", count(&l.Handshakes)},
		{"AELOS_MAX_VIEWERS_PER_USER", "viewers of one boat that may be of one user; 0: no limit", count(&l.MaxViewersPerSub)},
		{"AELOS_MAX_TOKEN_LIFE", "time that a token may last from now on; 0: no limit", duration(&l.MaxTokenLife)},
	}
}

// Bounds of those settings. A smaller frame might not hold a hello; a larger one does
// not fit into a message of API Gateway once it is base64; above the largest number
// of viewers their list would not fit into a table item.
const (
	minAelosFrame   = 2 << 10
	maxAelosFrame   = 96 << 10
	maxAelosViewers = 1000
	// A real hs2 has some three hundred bytes.
	minAelosHandshake = 512
)

func (c *Aelos) check() error {
	errs := []error{
		inRange("AELOS_MAX_FRAME", c.Limits.MaxFrame, minAelosFrame, maxAelosFrame),
		inRange("AELOS_MAX_VIEWERS", c.Limits.MaxViewers, 1, maxAelosViewers),
		inRange("AELOS_HELLO_TIMEOUT", c.Limits.HelloTimeout, time.Millisecond, maxTTL),
		inRange("AELOS_CLOCK_LEEWAY", c.Limits.Leeway, 0, maxTTL),
		inRange("AELOS_MAX_TOKEN_LIFE", c.Limits.MaxTokenLife, 0, maxTTL),
	}
	if n := c.Limits.MaxHandshake; n != 0 && n < minAelosHandshake {
		errs = append(errs, complaint("AELOS_MAX_HANDSHAKE", "a handshake does not fit into it"))
	}
	if c.SecretARN != "" && c.SecretFile != "" {
		errs = append(errs, complaint("AELOS_SECRET_ARN, "+envPrefix+"AELOS_SECRET_FILE", "only one of them can be used"))
	}
	if c.SecretARN != "" && !strings.HasPrefix(c.SecretARN, "arn:") {
		errs = append(errs, complaint("AELOS_SECRET_ARN", "it must be the ARN of a secret, not the secret itself"))
	}
	if c.Path != "" {
		if err := aelos.CheckPath(c.Path); err != nil {
			errs = append(errs, complaint("AELOS_PATH", "%w", err))
		}
	}
	if _, err := aelos.ParseController(c.Controller); err != nil {
		errs = append(errs, complaint("AELOS_CONTROLLER", "%w", err))
	}
	return errors.Join(errs...)
}

func (c *Aelos) spoken() bool { return c.SecretARN != "" || c.SecretFile != "" }

// useAelos adds the dialect, if it is spoken.
func (a *App) useAelos(r *relay.Relay) error {
	c := a.cfg.Aelos
	if !c.spoken() {
		return nil
	}
	controller, err := aelos.ParseController(c.Controller)
	if err != nil {
		return err
	}
	read := secret.File(c.SecretFile)
	if arn := c.SecretARN; arn != "" {
		read = func(ctx context.Context) (string, error) { return a.backend.Secret(ctx, arn) }
	}
	words := secret.New(secret.Options{Read: read, Check: aelos.CheckAnySecret, Now: a.backend.Now, Log: a.backend.Log})
	r.Use(aelos.New(r, aelos.Options{
		Limits: c.Limits, Secrets: words.All, Path: c.Path, Controller: controller,
	}))
	return nil
}
