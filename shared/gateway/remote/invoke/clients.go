package invoke

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awstransport "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"blindpost/shared/base/awsclient"
)

// Clients makes the clients of AWS, or of an emulator.
type Clients struct {
	// Region is the region of the functions and queues. If it is empty, it comes from the
	// address, or from the AWS configuration.
	Region string
}

const (
	// localRegion goes into the signatures for emulators, which do not check them.
	localRegion = "eu-central-1"
	// attempts is how often a call is tried. It is ten, because frames in quick
	// succession from many peers are throttled, and a frame that fails closes its
	// connection. The pauses stay short, because the peer waits.
	attempts   = 10
	maxBackoff = 2 * time.Second
)

// IsAWS reports whether an address belongs to AWS, which requires signatures. All others
// are emulators, such as sam local start-lambda or the runtime interface emulator.
func IsAWS(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" &&
		(strings.HasSuffix(u.Hostname(), ".amazonaws.com") || strings.HasSuffix(u.Hostname(), ".amazonaws.com.cn") ||
			strings.HasSuffix(u.Hostname(), ".api.aws"))
}

// CheckAddress checks the address of Lambda or of a queue.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "":
		return errors.New("it must be a URL such as https://lambda.eu-central-1.amazonaws.com or http://127.0.0.1:3001")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("it must have only a host and a path")
	}
	return nil
}

// regionOf reads the region out of an address such as
// https://lambda.eu-central-1.amazonaws.com; "" if it has none.
func regionOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	for label := range strings.SplitSeq(u.Hostname(), ".") {
		if strings.Count(label, "-") >= 2 && !strings.HasPrefix(label, "vpce-") {
			return label
		}
	}
	return ""
}

// config is the AWS configuration for an address.
func (c Clients) config(ctx context.Context, address string) (aws.Config, error) {
	region := c.Region
	if region == "" {
		region = regionOf(address)
	}
	if !IsAWS(address) {
		if region == "" {
			region = localRegion
		}
		return aws.Config{
			Region: region, HTTPClient: httpClient(), Retryer: retryer,
			Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		}, nil
	}
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(httpClient()), config.WithRetryer(retryer)}
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("failed to load the AWS configuration: %w", err)
	}
	return cfg, nil
}

func retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.MaxBackoff = maxBackoff
		// Each frame has its own retries: none may use up those of the others.
		o.RateLimiter = unlimited{}
	})
}

// unlimited lets every retry through.
type unlimited struct{}

func (unlimited) GetToken(context.Context, uint) (func() error, error) {
	return func() error { return nil }, nil
}

func (unlimited) AddTokens(uint) error { return nil }

// httpClient makes a client that allows as many concurrent calls as there are
// connections.
func httpClient() *awstransport.BuildableClient {
	return awstransport.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = 3 * time.Second }).
		WithTransportOptions(func(t *http.Transport) {
			t.TLSHandshakeTimeout = 3 * time.Second
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1024
			t.IdleConnTimeout = 50 * time.Second
		})
}

// Lambda makes the client for the Invoke API at an address.
func (c Clients) Lambda(ctx context.Context, address string) (*lambda.Client, error) {
	cfg, err := c.config(ctx, address)
	if err != nil {
		return nil, err
	}
	return lambda.NewFromConfig(cfg, func(o *lambda.Options) {
		o.BaseEndpoint = aws.String(strings.TrimSuffix(address, "/"))
		o.HTTPClient = awsclient.WithoutWriteTo(o.HTTPClient)
	}), nil
}

// SQS makes the client for the queue with this URL.
func (c Clients) SQS(ctx context.Context, queueURL string) (*awssqs.Client, error) {
	cfg, err := c.config(ctx, queueURL)
	if err != nil {
		return nil, err
	}
	return awssqs.NewFromConfig(cfg, func(o *awssqs.Options) {
		o.HTTPClient = awsclient.WithoutWriteTo(o.HTTPClient)
		if u, err := url.Parse(queueURL); err == nil && !IsAWS(queueURL) {
			o.BaseEndpoint = aws.String(u.Scheme + "://" + u.Host)
		}
	}), nil
}

// Secret makes a function that reads a secret from Secrets Manager.
func (c Clients) Secret(ctx context.Context, arn string) (func(context.Context) (string, error), error) {
	parts := strings.Split(arn, ":")
	if len(parts) < 7 || parts[0] != "arn" || parts[2] != "secretsmanager" {
		return nil, errors.New("it must be the ARN of a secret, not the secret itself")
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(httpClient()), config.WithRegion(parts[3]))
	if err != nil {
		return nil, fmt.Errorf("failed to load the AWS configuration: %w", err)
	}
	client := secretsmanager.NewFromConfig(cfg)
	return func(ctx context.Context) (string, error) {
		out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
		if err != nil {
			return "", fmt.Errorf("failed to read a secret: %w", err)
		}
		if out.SecretString == nil {
			return "", errors.New("failed to read a secret: it must be a text")
		}
		return *out.SecretString, nil
	}, nil
}
