package wiring

import (
	"context"

	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/remote/callback"
	"blindpost/shared/settings"
	"blindpost/shared/settings/secret"
)

// frontClients makes the clients of our own fronts, which share a secret and the
// connections of one transport.
func (a *App) frontClients() func(context.Context, string) (apigw.RemoteFront, error) {
	if len(settings.Fronts.Of(a.values)) == 0 {
		return nil
	}
	shared := secret.New(secret.Options{Read: a.secret(settings.FrontSecretARN, settings.FrontSecretFile), Long: true, Now: a.backend.Now, Log: a.backend.Log})
	transport := callback.NewTransport()
	return func(_ context.Context, address string) (apigw.RemoteFront, error) {
		return callback.NewClient(address, shared, transport), nil
	}
}
