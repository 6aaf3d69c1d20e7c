package wiring

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsclient "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/oklog/ulid/v2"

	"blindpost/shared/gateway/apigw"
	"blindpost/shared/push/sns"
	"blindpost/shared/queue/sqs"
	"blindpost/shared/settings"
	"blindpost/shared/table"
	"blindpost/shared/table/dynamo"
)

// Backend is the AWS services, the clock and the randomness of the functions.
type Backend struct {
	// Table, SQS and SNS return the same client each time, which they make at the first
	// call. (Connections is called once for each address.) After a failure they are
	// called again with the next request.
	Table       func(ctx context.Context) (table.Table, error)
	SQS         func(ctx context.Context) (sqs.API, error)
	SNS         func(ctx context.Context) (sns.API, error)
	Connections func(ctx context.Context, endpoint string) (apigw.API, error)
	// Secret reads a secret, each time that it is called.
	Secret func(ctx context.Context, arn string) (string, error)

	Log    *slog.Logger
	Now    func() time.Time
	Random io.Reader
	// NewID makes ids that are unique across all processes.
	NewID func() string
}

// AWS is the backend in Lambda.
func AWS(v settings.Values) Backend {
	load := memoize(func(ctx context.Context) (aws.Config, error) {
		cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(newHTTPClient()))
		if err != nil {
			return aws.Config{}, fmt.Errorf("failed to load the AWS configuration: %w", err)
		}
		return cfg, nil
	})
	secrets := lazyClient(load, func(cfg aws.Config) *secretsmanager.Client { return secretsmanager.NewFromConfig(cfg) })
	return Backend{
		Table: lazyClient(load, func(cfg aws.Config) table.Table {
			return dynamo.New(dynamodb.NewFromConfig(cfg), dynamo.Options{Table: settings.Table.Of(v)})
		}),
		SQS: lazyClient(load, func(cfg aws.Config) sqs.API { return awssqs.NewFromConfig(cfg) }),
		SNS: lazyClient(load, func(cfg aws.Config) sns.API { return awssns.NewFromConfig(cfg) }),
		Connections: func(ctx context.Context, endpoint string) (apigw.API, error) {
			cfg, err := load(ctx)
			if err != nil {
				return nil, err
			}
			return apigatewaymanagementapi.NewFromConfig(cfg, func(o *apigatewaymanagementapi.Options) {
				if o.BaseEndpoint == nil { // AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI wins
					o.BaseEndpoint = &endpoint
				}
			}), nil
		},
		Secret: func(ctx context.Context, arn string) (string, error) {
			client, err := secrets(ctx)
			if err != nil {
				return "", err
			}
			out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
			if err != nil {
				return "", fmt.Errorf("failed to read a secret: %w", err)
			}
			if out.SecretString == nil {
				return "", errors.New("failed to read a secret: it is no text")
			}
			return *out.SecretString, nil
		},
		Log:    slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: settings.LogLevel.Of(v)})),
		Now:    time.Now,
		Random: rand.Reader,
		NewID:  newIDs(),
	}
}

// Timeouts of the HTTP client that all AWS clients share. AWS is next door and answers
// within milliseconds, and every second counts towards the timeout of a function.
const (
	dialTimeout   = 3 * time.Second
	tlsTimeout    = 3 * time.Second
	answerTimeout = 10 * time.Second
	// idleTimeout is how long an unused connection is kept. A frozen
	// function does not answer on its connections, and AWS or a device on the way drops
	// them; the first write on such a connection is uncertain (see table/dynamo).
	idleTimeout = 20 * time.Second
)

// newHTTPClient makes the HTTP client of all clients of a process, so that they
// share its connections.
func newHTTPClient() *awsclient.BuildableClient {
	return awsclient.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.TLSHandshakeTimeout = tlsTimeout
			t.ResponseHeaderTimeout = answerTimeout
			t.IdleConnTimeout = idleTimeout
		})
}

// lazyClient makes a client out of the configuration, once.
func lazyClient[T any](load func(context.Context) (aws.Config, error), client func(aws.Config) T) func(context.Context) (T, error) {
	return memoize(func(ctx context.Context) (T, error) {
		cfg, err := load(ctx)
		if err != nil {
			var none T
			return none, err
		}
		return client(cfg), nil
	})
}

// memoize calls f until it has succeeded.
func memoize[T any](f func(context.Context) (T, error)) func(context.Context) (T, error) {
	var mu sync.Mutex
	var done bool
	var v T
	return func(ctx context.Context) (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return v, nil
		}
		got, err := f(ctx)
		if err == nil {
			v, done = got, true
		}
		return got, err
	}
}

// newIDs makes ids out of the id of this process and a counter.
func newIDs() func() string {
	var next atomic.Uint64
	process := ulid.MustNew(ulid.Now(), rand.Reader).String() // rand.Reader never fails
	return func() string { return process + "." + strconv.FormatUint(next.Add(1), 36) }
}
