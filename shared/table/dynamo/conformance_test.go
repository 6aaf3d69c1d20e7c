//go:build aws

package dynamo

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"blindpost/shared/proof/tabletest"
	"blindpost/shared/table"
)

// suiteChecks is the number of random histories of the property test; every step
// of one is several requests.
const suiteChecks = 100

func TestConformance(t *testing.T) {
	tabletest.Run(t, func(t *testing.T, now func() time.Time) table.Table {
		return New(standin, Options{Table: freshTable(t), Now: now})
	}, tabletest.Checks(suiteChecks))
}

// The suite again, with the troubles of a real DynamoDB: it must not be able to
// tell the difference.
func TestConformanceInTrouble(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	troubles := &troubled{API: standin, rand: rand.New(rand.NewPCG(seed, 0))}
	tabletest.Run(t, func(t *testing.T, now func() time.Time) table.Table {
		// Small random numbers make short pauses.
		return New(troubles, Options{Table: freshTable(t), Now: now, Rand: func() uint64 { return rand.Uint64() >> 4 }})
	}, tabletest.Checks(suiteChecks/4))
	t.Logf("refused %d, unreachable %d, lost reads %d, lost transactions %d, of which done %d",
		troubles.refused, troubles.unreachable, troubles.reads, troubles.transactions, troubles.done)
	if troubles.refused < 100 || troubles.unreachable < 100 || troubles.reads < 100 || troubles.transactions < 100 || troubles.done < 10 {
		t.Error("there was too little trouble to prove anything")
	}
}

// troubled is a DynamoDB that refuses one request in twenty, cannot be reached for
// another, and loses the answers to a few more, as far as the table can make up
// for that: not that to a single write.
type troubled struct {
	API

	mu                                              sync.Mutex
	rand                                            *rand.Rand
	refused, unreachable, reads, transactions, done int
}

// fate is what happens to a request.
type fate int

const (
	passes fate = iota
	refuses
	cannotBeReached
	losesRequest
	losesAnswer
)

func (c *troubled) fate() fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.rand.IntN(40) {
	case 0, 1:
		c.refused++
		return refuses
	case 2, 3:
		c.unreachable++
		return cannotBeReached
	case 4:
		return losesRequest
	case 5, 6, 7:
		return losesAnswer
	}
	return passes
}

// pick chooses one of several errors.
func (c *troubled) pick(errs ...error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errs[c.rand.IntN(len(errs))]
}

func (c *troubled) lose(counts ...*int) error {
	c.mu.Lock()
	for _, n := range counts {
		*n++
	}
	c.mu.Unlock()
	return c.pick(lost(), failure(500, &types.InternalServerError{}), code(503, "ServiceUnavailable"))
}

// single is the trouble of a request for one item; nil if there is none.
func (c *troubled) single(reads bool) error {
	switch fate := c.fate(); {
	case fate == refuses:
		return c.pick(code(400, "ThrottlingException"), failure(400, &types.ProvisionedThroughputExceededException{}), failure(400, &types.TransactionConflictException{}))
	case fate == cannotBeReached:
		return unreachable()
	case fate != passes && reads:
		return c.lose(&c.reads)
	}
	return nil
}

func (c *troubled) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := c.single(true); err != nil {
		return nil, err
	}
	return c.API.GetItem(ctx, in, o...)
}

func (c *troubled) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if err := c.single(true); err != nil {
		return nil, err
	}
	return c.API.Query(ctx, in, o...)
}

func (c *troubled) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := c.single(false); err != nil {
		return nil, err
	}
	return c.API.PutItem(ctx, in, o...)
}

func (c *troubled) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := c.single(false); err != nil {
		return nil, err
	}
	return c.API.UpdateItem(ctx, in, o...)
}

func (c *troubled) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if err := c.single(false); err != nil {
		return nil, err
	}
	return c.API.DeleteItem(ctx, in, o...)
}

func (c *troubled) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	switch c.fate() {
	case refuses:
		reasons := make([]types.CancellationReason, len(in.TransactItems))
		for i := range reasons {
			reasons[i].Code = aws.String("None")
		}
		c.mu.Lock()
		reasons[c.rand.IntN(len(reasons))] = reason("TransactionConflict")
		c.mu.Unlock()
		return nil, c.pick(canceled(reasons...), code(400, "ThrottlingException"), failure(400, &types.TransactionInProgressException{}))
	case cannotBeReached:
		return nil, unreachable()
	case losesRequest:
		return nil, c.lose(&c.transactions)
	case losesAnswer:
		if _, err := c.API.TransactWriteItems(ctx, in, o...); err != nil {
			return nil, c.lose(&c.transactions)
		}
		return nil, c.lose(&c.transactions, &c.done)
	}
	return c.API.TransactWriteItems(ctx, in, o...)
}
