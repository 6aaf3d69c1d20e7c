// Package sns sends pushes through Amazon SNS: one platform application for APNs, one for
// FCM, and an endpoint in it for each token.
//
// # The life of an endpoint
//
// The relay stores no endpoints: CreatePlatformEndpoint returns the existing one of a
// token. SNS disables an endpoint when the provider refuses its token, which happens after
// Publish has returned; so a dead token is noticed at the next push. The sender then
// compares the token of the endpoint with ours:
//
//   - They differ: the phone has a new token. The sender sets it, enables the endpoint
//     and tries the push once more.
//   - They are equal: the provider has refused this token. If the sender enabled the
//     endpoint again, the next push would be lost like the last one, and the dead token
//     would never be noticed. It deletes the endpoint and returns push.ErrTokenGone. If
//     the phone comes back with the same token, it gets a new endpoint.
//
// No token or payload gets into an error or a log: of an error of SNS only the code is
// repeated.
package sns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	awssns "github.com/aws/aws-sdk-go-v2/service/sns"

	"blindpost/shared/push"
)

// API is the part of *sns.Client that the sender uses.
type API interface {
	CreatePlatformEndpoint(context.Context, *awssns.CreatePlatformEndpointInput, ...func(*awssns.Options)) (*awssns.CreatePlatformEndpointOutput, error)
	GetEndpointAttributes(context.Context, *awssns.GetEndpointAttributesInput, ...func(*awssns.Options)) (*awssns.GetEndpointAttributesOutput, error)
	SetEndpointAttributes(context.Context, *awssns.SetEndpointAttributesInput, ...func(*awssns.Options)) (*awssns.SetEndpointAttributesOutput, error)
	DeleteEndpoint(context.Context, *awssns.DeleteEndpointInput, ...func(*awssns.Options)) (*awssns.DeleteEndpointOutput, error)
	Publish(context.Context, *awssns.PublishInput, ...func(*awssns.Options)) (*awssns.PublishOutput, error)
}

var _ API = (*awssns.Client)(nil)

// Options are the settings of a Sender.
type Options struct {
	// IOS and Android are the ARNs of the platform applications:
	// "...:app/APNS/NAME" or "...:app/APNS_SANDBOX/NAME", and "...:app/GCM/NAME".
	IOS, Android string
	// Fallback sends the pushes for a platform without an application. Without it they
	// fail.
	Fallback push.Sender
	Log      *slog.Logger
}

// Sender sends pushes. Make one with New.
type Sender struct {
	client   func(context.Context) (API, error)
	apps     map[push.Platform]app
	fallback push.Sender
	log      *slog.Logger

	mu        sync.Mutex
	endpoints map[endpointKey]string // cached ARNs
}

var _ push.Sender = (*Sender)(nil)

// maxEndpoints bounds the cached endpoints of a Sender.
const maxEndpoints = 4096

type endpointKey struct {
	platform push.Platform
	token    string
}

// app is a platform application.
type app struct {
	arn string
	// service is its kind: APNS, APNS_SANDBOX or GCM.
	service string
}

// New makes a sender. client is called for the first push.
func New(client func(context.Context) (API, error), o Options) (*Sender, error) {
	s := &Sender{
		client: client, apps: make(map[push.Platform]app), fallback: o.Fallback, log: o.Log,
		endpoints: make(map[endpointKey]string),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, a := range []struct {
		platform push.Platform
		arn      string
		services []string
	}{
		{push.IOS, o.IOS, []string{"APNS", "APNS_SANDBOX"}},
		{push.Android, o.Android, []string{"GCM"}},
	} {
		if a.arn == "" {
			continue
		}
		service, err := serviceOf(a.arn, a.services)
		if err != nil {
			return nil, fmt.Errorf("platform application for %s: %w", a.platform, err)
		}
		s.apps[a.platform] = app{a.arn, service}
	}
	return s, nil
}

// serviceOf is the service in the ARN of a platform application.
func serviceOf(arn string, services []string) (string, error) {
	parts := strings.Split(arn, ":")
	if len(parts) == 6 && parts[0] == "arn" && parts[2] == "sns" {
		resource := strings.Split(parts[5], "/")
		for _, s := range services {
			if len(resource) == 3 && resource[0] == "app" && resource[1] == s && resource[2] != "" {
				return s, nil
			}
		}
	}
	return "", fmt.Errorf("%q is not the ARN of an application for %s", arn, strings.Join(services, " or "))
}

// Send implements push.Sender.
func (s *Sender) Send(ctx context.Context, n push.Notification) error {
	a, ok := s.apps[n.Platform]
	switch {
	case n.Token == "":
		return errors.New("failed to push: no token")
	case !ok && s.fallback != nil:
		return s.fallback.Send(ctx, n)
	case !ok:
		return fmt.Errorf("failed to push: no platform application for %s", n.Platform)
	}
	client, err := s.client(ctx)
	if err != nil {
		return fmt.Errorf("failed to push: %w", err)
	}
	in, err := a.message(n)
	if err != nil {
		return err
	}
	d := &delivery{Sender: s, api: client, app: a, key: endpointKey{n.Platform, n.Token}, in: in}
	if err := d.run(ctx); err != nil {
		return fmt.Errorf("failed to push: %w", err)
	}
	return nil
}

func (s *Sender) known(k endpointKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endpoints[k]
}

func (s *Sender) remember(k endpointKey, arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.endpoints) >= maxEndpoints {
		clear(s.endpoints)
	}
	s.endpoints[k] = arn
}

func (s *Sender) forget(k endpointKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.endpoints, k)
}
