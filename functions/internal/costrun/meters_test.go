package costrun

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	api "github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"blindpost/shared/gateway/apigw"
	"blindpost/shared/proof/cost"
	"blindpost/shared/push/sns"
	"blindpost/shared/queue/sqs"
	"blindpost/shared/table"
)

// slowTable takes its time, as DynamoDB does.
type slowTable struct{ table.Table }

func (t slowTable) Get(ctx context.Context, k table.Key) (table.Item, error) {
	time.Sleep(readTime)
	return t.Table.Get(ctx, k)
}

func (t slowTable) Query(ctx context.Context, q table.Query) (table.Page, error) {
	time.Sleep(readTime)
	return t.Table.Query(ctx, q)
}

func (t slowTable) Write(ctx context.Context, op table.Op) (table.Item, error) {
	time.Sleep(writeTime)
	return t.Table.Write(ctx, op)
}

func (t slowTable) Transact(ctx context.Context, ops []table.Op) error {
	time.Sleep(transactTime)
	return t.Table.Transact(ctx, ops)
}

// slowConnections is @connections; the emulator counts.
type slowConnections struct{ apigw.API }

func (c slowConnections) PostToConnection(ctx context.Context, in *api.PostToConnectionInput, o ...func(*api.Options)) (*api.PostToConnectionOutput, error) {
	time.Sleep(postTime)
	return c.API.PostToConnection(ctx, in, o...)
}

func (c slowConnections) GetConnection(ctx context.Context, in *api.GetConnectionInput, o ...func(*api.Options)) (*api.GetConnectionOutput, error) {
	time.Sleep(postTime)
	return c.API.GetConnection(ctx, in, o...)
}

func (c slowConnections) DeleteConnection(ctx context.Context, in *api.DeleteConnectionInput, o ...func(*api.Options)) (*api.DeleteConnectionOutput, error) {
	time.Sleep(postTime)
	return c.API.DeleteConnection(ctx, in, o...)
}

// queues is SQS with a meter.
type queues struct {
	sqs.API
	names map[string]string // by URL

	mu  sync.Mutex
	use map[string]cost.Queue // by name
}

var _ sqs.API = (*queues)(nil)

func (q *queues) count(url string, add func(*cost.Queue)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.use[q.names[url]]
	add(&u)
	q.use[q.names[url]] = u
}

func requests(bytes int) float64 { return float64(max(1, (bytes+64<<10-1)/(64<<10))) }

// put sends without waiting: API Gateway does so, and its time is not charged.
func (q *queues) put(ctx context.Context, in *awssqs.SendMessageInput) (*awssqs.SendMessageOutput, error) {
	q.count(*in.QueueUrl, func(u *cost.Queue) { u.Sends += requests(len(*in.MessageBody)) })
	return q.API.SendMessage(ctx, in)
}

func (q *queues) SendMessage(ctx context.Context, in *awssqs.SendMessageInput, _ ...func(*awssqs.Options)) (*awssqs.SendMessageOutput, error) {
	time.Sleep(sendTime)
	return q.put(ctx, in)
}

func (q *queues) ChangeMessageVisibilityBatch(ctx context.Context, in *awssqs.ChangeMessageVisibilityBatchInput, o ...func(*awssqs.Options)) (*awssqs.ChangeMessageVisibilityBatchOutput, error) {
	time.Sleep(sendTime)
	q.count(*in.QueueUrl, func(u *cost.Queue) { u.Postpones++ })
	return q.API.ChangeMessageVisibilityBatch(ctx, in, o...)
}

// provider is SNS with a meter.
type provider struct {
	sns.API
	mu  sync.Mutex
	use cost.Push
}

func (p *provider) CreatePlatformEndpoint(_ context.Context, in *awssns.CreatePlatformEndpointInput, _ ...func(*awssns.Options)) (*awssns.CreatePlatformEndpointOutput, error) {
	time.Sleep(pushTime)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.use.Requests++
	arn := strings.Replace(*in.PlatformApplicationArn, ":app/", ":endpoint/", 1) + fmt.Sprintf("/%x", *in.Token)
	return &awssns.CreatePlatformEndpointOutput{EndpointArn: &arn}, nil
}

func (p *provider) Publish(context.Context, *awssns.PublishInput, ...func(*awssns.Options)) (*awssns.PublishOutput, error) {
	time.Sleep(pushTime)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.use.Publishes++
	return &awssns.PublishOutput{}, nil
}

// logbook counts what is logged, and keeps it to see that nothing went wrong.
type logbook struct {
	mu    sync.Mutex
	bytes int
	loud  []string // what is worse than info
}

func (b *logbook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += len(p) + eventLog
	if line := string(p); strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`) {
		b.loud = append(b.loud, line)
	}
	return len(p), nil
}

// worst is the first warning or error, "" if there is none.
func (b *logbook) worst() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.loud) == 0 {
		return ""
	}
	return fmt.Sprintf("%d warnings and errors, first %s", len(b.loud), b.loud[0])
}
