package wiring

import (
	"context"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/dialect/skald"
	"blindpost/shared/push"
	"blindpost/shared/relay"
	"blindpost/shared/settings"
	"blindpost/shared/settings/secret"
)

// useDialects adds all dialects, and returns the one that serves HTTP too. A function that
// cannot read the roots of attestation refuses everything: that is noticed at the
// deployment, while a device without a valid attestation would not be.
func (a *App) useDialects(r *relay.Relay, pusher push.Sender) (*agentknock.Dialect, error) {
	r.Use(skald.New(r, skald.Options{
		Limits:   skald.LimitsFrom(a.values),
		PushText: push.Text{Title: settings.PushTitle.Of(a.values), Body: settings.PushBody.Of(a.values)},
	}))
	attestation, err := agentknock.AttestationFrom(a.values)
	if err != nil {
		return nil, err
	}
	knock := agentknock.New(r, agentknock.Options{
		Limits: agentknock.LimitsFrom(a.values), Pusher: pusher, RemoteIP: remoteIP, Attestation: attestation,
	})
	r.Use(knock)
	return knock, a.useAelos(r)
}

// useAelos adds Aelos, if there is a secret for it.
func (a *App) useAelos(r *relay.Relay) error {
	read := a.secret(settings.AelosSecretARN, settings.AelosSecretFile)
	if read == nil {
		return nil
	}
	controller, err := aelos.ControllerFrom(a.values)
	secrets := secret.New(secret.Options{Read: read, Check: aelos.CheckAnySecret, Now: a.backend.Now, Log: a.backend.Log})
	r.Use(aelos.New(r, aelos.Options{
		Limits: aelos.LimitsFrom(a.values), Secrets: secrets.All, Path: settings.AelosPath.Of(a.values), Controller: controller,
	}))
	return err
}

// secret reads a secret from Secrets Manager or else from a file; nil if neither is set.
func (a *App) secret(arn, file settings.Key[string]) func(context.Context) (string, error) {
	if id := arn.Of(a.values); id != "" {
		return func(ctx context.Context) (string, error) { return a.backend.Secret(ctx, id) }
	}
	if name := file.Of(a.values); name != "" {
		return secret.File(name)
	}
	return nil
}

// maxFrame is the largest frame of any dialect.
func (a *App) maxFrame() int64 {
	return max(settings.MaxFrame.Of(a.values), settings.MaxLiveFrame.Of(a.values), settings.AelosMaxFrame.Of(a.values), agentknock.MaxFrame)
}
