package dynamo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"blindpost/shared/table"
)

var _ table.Table = (*Table)(nil)

// API is the part of *dynamodb.Client that the table uses.
type API interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

var _ API = (*dynamodb.Client)(nil)

// Options are the settings of a Table.
type Options struct {
	// Table is the name or the ARN of the DynamoDB table.
	Table string
	// Now is the clock. Default is time.Now.
	Now func() time.Time
	// Rand spreads the pauses between tries and makes the tokens of transactions. No two
	// tokens within ten minutes may be equal, even in different processes. Default is
	// math/rand/v2.
	Rand func() uint64
	// OnConsumed receives the cost of each request, as DynamoDB reports it. DynamoDB
	// reports nothing for a refused request, although a failed condition costs as much
	// as the write would have. Many goroutines call it. Without it DynamoDB is not asked
	// to report.
	OnConsumed func(Consumed)
}

// Consumed is the cost of one request.
type Consumed struct {
	Request string // the name of the request, such as "PutItem"
	// Units are capacity units: write units for the four requests that write
	// and read units for GetItem and Query.
	Units float64
}

// Table is a table in DynamoDB. Make one with New.
type Table struct {
	client     API
	name       string
	now        func() time.Time
	rand       func() uint64
	onConsumed func(Consumed)
}

// New makes a table. It sends nothing; the DynamoDB table exists already.
func New(client API, o Options) *Table {
	t := &Table{client: client, name: o.Table, now: o.Now, rand: o.Rand, onConsumed: o.OnConsumed}
	if t.now == nil {
		t.now = time.Now
	}
	if t.rand == nil {
		t.rand = rand.Uint64
	}
	return t
}

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, k table.Key) (table.Item, error) {
	if err := k.Validate(); err != nil {
		return table.Item{}, err
	}
	in := &dynamodb.GetItemInput{
		TableName:              &t.name,
		Key:                    encodeKey(k),
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: t.capacity(),
	}
	var out *dynamodb.GetItemOutput
	err := t.read(ctx, func() (err error) {
		out, err = t.client.GetItem(ctx, in, withoutRetries)
		return err
	})
	if err != nil {
		return table.Item{}, fmt.Errorf("failed to get an item: %w", err)
	}
	t.consumed("GetItem", out.ConsumedCapacity)
	it, err := decodeLive(out.Item, t.now())
	if err != nil {
		return table.Item{}, fmt.Errorf("failed to get an item: %w", err)
	}
	if it == nil {
		return table.Item{}, table.ErrNotFound
	}
	return *it, nil
}
