package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/settings/secret"
	"blindpost/shared/standalone"
)

// AelosSettings are those of the Aelos protocol, but for its limits.
type AelosSettings struct {
	SecretFile string // "": the protocol is not spoken
	Path       string // besides aelos.Path; "" for none
	Controller aelos.Controller
}

func (s *Settings) aelosFlags(f *settingsFlags) {
	f.group("Aelos (spoken at " + aelos.Path + " if there is a secret)")
	f.add((*stringValue)(&s.Aelos.SecretFile), "aelos-secret-file", "`file` with the secret that admission tokens are signed with, during a rotation the old one and the new one, separated by white space; read again every few minutes and on SIGHUP")
	f.add((*stringValue)(&s.Aelos.Path), "aelos-path", "one more `path` to speak it at")
	f.add((*controllerValue)(&s.Aelos.Controller), "aelos-controller", "`claim=value` by which a token says that a viewer may send commands")

	f.group("Limits of Aelos (can be changed while the relay runs)")
	l := &s.Limits.Aelos
	f.add((*sizeValue)(&l.MaxFrame), "aelos-max-frame", "largest frame in `bytes`")
	f.add((*countValue)(&l.MaxViewers), "aelos-max-viewers", "`viewers` of one boat at a time")
	f.add((*durationValue)(&l.HelloTimeout), "aelos-hello-timeout", "`time` to say hello")
	f.add((*durationValue)(&l.Leeway), "aelos-clock-leeway", "`time` by which the clock of the token minter may differ")
	f.add((*countValue)(&l.BoatFrames), "aelos-boat-frames-per-minute", "`frames` a minute of one boat; 0: no limit")
	f.add((*countValue)(&l.ViewerFrames), "aelos-viewer-frames-per-minute", "`frames` a minute of one viewer, but for commands; 0: no limit")
	f.add((*countValue)(&l.Commands), "aelos-commands-per-minute", "`commands` a minute of one viewer; 0: no limit")
	f.add((*sizeValue)(&l.CommandBytes), "aelos-command-bytes-per-minute", "`bytes` of commands a minute of one user; 0: no limit")
	f.add((*sizeValue)(&l.MaxHandshake), "aelos-max-handshake", "largest hs1 or hs2 in `bytes`; 0: as any frame")
	f.add((*countValue)(&l.Handshakes), "aelos-handshakes-per-minute", "`handshakes` a minute with one boat, a quarter of them of one user; 0: no limit")
	f.add((*countValue)(&l.MaxViewersPerSub), "aelos-max-viewers-per-user", "`viewers` of one boat that may be of one user; 0: no limit")
	f.add((*durationValue)(&l.MaxTokenLife), "aelos-max-token-life", "`time` that a token may last from now on; 0: no limit")
}

// Bounds of the settings of Aelos. A smaller frame might not hold a hello; above the
// largest number of viewers their list would not fit into a table item.
const (
	minAelosFrame   = 2 << 10
	maxAelosFrame   = 1 << 20
	maxAelosViewers = 1000
	// A real hs2 has some three hundred bytes.
	minAelosHandshake = 512
)

func (s *Settings) checkAelos() error {
	l := s.Limits.Aelos
	errs := []error{
		inRange("aelos-max-frame", sizeValue(l.MaxFrame), minAelosFrame, maxAelosFrame),
		inRange("aelos-max-viewers", l.MaxViewers, 1, maxAelosViewers),
		positive("aelos-hello-timeout", l.HelloTimeout),
		inRange("aelos-clock-leeway", l.Leeway, 0, maxTTL),
		inRange("aelos-max-token-life", l.MaxTokenLife, 0, maxTTL),
	}
	if n := l.MaxHandshake; n != 0 && n < minAelosHandshake {
		errs = append(errs, complaint("aelos-max-handshake", "a handshake does not fit into it"))
	}
	if p := s.Aelos.Path; p != "" {
		if s.Aelos.SecretFile == "" {
			errs = append(errs, complaint("aelos-path", "it needs aelos-secret-file"))
		}
		if err := aelos.CheckPath(p); err != nil {
			errs = append(errs, complaint("aelos-path", "%w", err))
		}
	}
	if s.Aelos.SecretFile != "" && s.Transport.SendBuffer < 2*l.MaxFrame {
		errs = append(errs, complaint("send-buffer", "it does not hold two frames of aelos-max-frame"))
	}
	return errors.Join(errs...)
}

// controllerValue is a claim and its value.
type controllerValue aelos.Controller

func (v *controllerValue) String() string {
	if c := aelos.Controller(*v); c != (aelos.Controller{}) {
		return c.String()
	}
	return ""
}

func (v *controllerValue) Set(s string) error {
	c, err := aelos.ParseController(strings.TrimSpace(s))
	if err != nil {
		return err
	}
	*v = controllerValue(c)
	return nil
}

// nodeAelos turns the settings into what standalone runs, and checks that there is a
// secret.
func nodeAelos(s AelosSettings, log *slog.Logger) (standalone.Aelos, error) {
	if s.SecretFile == "" {
		return standalone.Aelos{}, nil
	}
	words := secret.New(secret.Options{Read: secret.File(s.SecretFile), Check: aelos.CheckSecrets, Log: log})
	if _, err := words.All(context.Background()); err != nil {
		return standalone.Aelos{}, fmt.Errorf("setting aelos-secret-file: %w", err)
	}
	return standalone.Aelos{Secrets: words.All, Path: s.Path, Controller: s.Controller, Reread: words.Reread}, nil
}
