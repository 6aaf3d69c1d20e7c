package apigw

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"

	"blindpost/shared/base/awsclient"
	"blindpost/shared/gateway"
)

// MaxMessage is the longest message in bytes that API Gateway carries, after
// base64.
const MaxMessage = 128 << 10

// API is the part of *apigatewaymanagementapi.Client that the front uses.
type API interface {
	PostToConnection(context.Context, *api.PostToConnectionInput, ...func(*api.Options)) (*api.PostToConnectionOutput, error)
	GetConnection(context.Context, *api.GetConnectionInput, ...func(*api.Options)) (*api.GetConnectionOutput, error)
	DeleteConnection(context.Context, *api.DeleteConnectionInput, ...func(*api.Options)) (*api.DeleteConnectionOutput, error)
}

var _ API = (*api.Client)(nil)

// apiTarget is API Gateway, by way of @connections.
type apiTarget struct{ API }

func (a apiTarget) Post(ctx context.Context, id string, m gateway.Message) (gateway.Outcome, error) {
	if encodedLen(m) > MaxMessage {
		return 0, gateway.ErrTooLarge
	}
	data, err := encode(m)
	if err != nil {
		return 0, err
	}
	_, err = a.PostToConnection(ctx, &api.PostToConnectionInput{ConnectionId: &id, Data: data}, withoutRetries)
	return gateway.Sent, err
}

func (a apiTarget) Close(ctx context.Context, id string, _ gateway.CloseCode, _ string) error {
	_, err := a.DeleteConnection(ctx, &api.DeleteConnectionInput{ConnectionId: &id}, withoutRetries)
	return err
}

func (a apiTarget) Stat(ctx context.Context, id string) (gateway.Stat, error) {
	out, err := a.GetConnection(ctx, &api.GetConnectionInput{ConnectionId: &id}, withoutRetries)
	if err != nil {
		return gateway.Stat{}, err
	}
	return gateway.Stat{ConnectedAt: aws.ToTime(out.ConnectedAt), LastActiveAt: aws.ToTime(out.LastActiveAt)}, nil
}

// withoutRetries makes the client send a request once, because our own retries know the
// errors of this API. It also makes the client read the whole response: a message that
// was posted and seems to have failed would be posted again.
func withoutRetries(o *api.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = awsclient.WithoutWriteTo(o.HTTPClient)
}
