package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"blindpost/shared/table"
)

// Transact implements table.Table. A transaction of one operation is done as a single
// write or read, which costs half as much. It then has no token: see ErrUncertain in the
// package documentation.
func (t *Table) Transact(ctx context.Context, ops []table.Op) error {
	if err := table.ValidateTransaction(ops); err != nil {
		return err
	}
	switch {
	case len(ops) == 0:
		return ctx.Err()
	case len(ops) > 1:
		return t.transact(ctx, ops)
	case ops[0].Action == table.Check:
		return t.check(ctx, ops[0])
	}
	_, err := t.write(ctx, ops[0])
	return err
}

// check evaluates the conditions of a single Check.
func (t *Table) check(ctx context.Context, op table.Op) error {
	var old *table.Item
	it, err := t.Get(ctx, op.Key)
	switch {
	case err == nil:
		old = &it
	case !errors.Is(err, table.ErrNotFound):
		return err
	}
	_, err = table.Apply(op, old, t.now())
	return err
}

func (t *Table) transact(ctx context.Context, ops []table.Op) error {
	tries := t.tries()
	// replace marks updates whose stored item has expired, as in write.
	replace := make([]bool, len(ops))
	// in is the request with its token. While its outcome is uncertain, the same request
	// is sent again: DynamoDB carries out the requests of one token once. It is nil when
	// it is certain that the last request was not done, so that the next may differ.
	var in *dynamodb.TransactWriteItemsInput
	var now time.Time
	uncertain := false
	for {
		if err := ctx.Err(); err != nil {
			return transactError(uncertain, err)
		}
		if in == nil {
			var err error
			now = t.now()
			if in, err = t.transaction(ops, replace, now); err != nil {
				return err
			}
		}
		out, err := t.client.TransactWriteItems(ctx, in, withoutRetries)
		if err == nil {
			t.consumed("TransactWriteItems", consumedOf(out)...)
			return nil
		}

		var canceled *types.TransactionCanceledException
		if errors.As(err, &canceled) {
			v, err := judgeAll(ops, replace, canceled.CancellationReasons, now)
			if err != nil {
				return err
			}
			// A conflict says nothing about an earlier try of the same request. A checked
			// condition does: that try was not done.
			if v != unchanged || !uncertain {
				in, uncertain = nil, false
			}
			if tries.replaceNow(v) {
				continue
			}
		} else {
			switch classify(err) {
			case permanentError:
				return transactError(uncertain, refusal(err))
			case uncertainOutcome:
				uncertain = true
			case transientError:
				if !uncertain {
					in = nil
				}
			}
		}
		stop := tries.pause(ctx)
		switch {
		case stop == nil:
		case ctx.Err() != nil:
			return transactError(uncertain, ctx.Err())
		case uncertain:
			return transactError(true, withoutMessage(err)) // and not ErrBusy
		default:
			return transactError(false, fmt.Errorf("%w: %w", stop, withoutMessage(err)))
		}
	}
}

// transactError is the error of a transaction that failed.
func transactError(uncertain bool, err error) error {
	if uncertain {
		return fmt.Errorf("failed to write a transaction: %w: %w", ErrUncertain, err)
	}
	return fmt.Errorf("failed to write a transaction: %w", err)
}

// transaction makes the request for operations, with a token of its own.
func (t *Table) transaction(ops []table.Op, replace []bool, now time.Time) (*dynamodb.TransactWriteItemsInput, error) {
	items := make([]types.TransactWriteItem, len(ops))
	for i := range ops {
		op := ops[i]
		if replace[i] {
			var err error
			if op, err = replacement(op, now); err != nil {
				return nil, table.AtOp(err, i)
			}
		}
		items[i] = t.transactItem(op, now)
	}
	return &dynamodb.TransactWriteItemsInput{
		TransactItems:          items,
		ClientRequestToken:     aws.String(fmt.Sprintf("%016x%016x", t.rand(), t.rand())),
		ReturnConsumedCapacity: t.capacity(),
	}, nil
}

func (t *Table) transactItem(op table.Op, now time.Time) types.TransactWriteItem {
	var e expression
	condition := e.condition(op, now)
	switch op.Action {
	case table.Put:
		return types.TransactWriteItem{Put: &types.Put{
			TableName:                 &t.name,
			Item:                      encodeItem(op.Key, op.Set, op.Expires),
			ConditionExpression:       condition,
			ExpressionAttributeNames:  e.names,
			ExpressionAttributeValues: e.values,
		}}
	case table.Update:
		update := e.update(op)
		return types.TransactWriteItem{Update: &types.Update{
			TableName:                           &t.name,
			Key:                                 encodeKey(op.Key),
			UpdateExpression:                    update,
			ConditionExpression:                 condition,
			ExpressionAttributeNames:            e.names,
			ExpressionAttributeValues:           e.values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	case table.Delete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName:                 &t.name,
			Key:                       encodeKey(op.Key),
			ConditionExpression:       condition,
			ExpressionAttributeNames:  e.names,
			ExpressionAttributeValues: e.values,
		}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName:                 &t.name,
			Key:                       encodeKey(op.Key),
			ConditionExpression:       condition,
			ExpressionAttributeNames:  e.names,
			ExpressionAttributeValues: e.values,
		}}
	}
}

// judgeAll evaluates the cancellation reasons of a transaction, one for each operation. It
// returns the error of the first operation that failed, unless one before it could not be
// checked: then only the next try can tell which is the first. Otherwise it marks in
// replace the updates that the next try must replace.
func judgeAll(ops []table.Op, replace []bool, reasons []types.CancellationReason, now time.Time) (verdict, error) {
	all := unchanged
	for i := range min(len(ops), len(reasons)) {
		switch code := aws.ToString(reasons[i].Code); code {
		case "", "None":
		case "ConditionalCheckFailed":
			v, err := judge(ops[i], replace[i], reasons[i].Item, now)
			if err != nil {
				return unchanged, table.AtOp(err, i)
			}
			replace[i] = v == expired
			all = max(all, v)
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
			return all, nil
		case "ValidationError":
			return unchanged, fmt.Errorf("failed to write a transaction: %w", invalid(aws.ToString(reasons[i].Message)))
		default:
			return unchanged, fmt.Errorf("failed to write a transaction: %w", &serviceError{code: code})
		}
	}
	return all, nil
}

func consumedOf(out *dynamodb.TransactWriteItemsOutput) []*types.ConsumedCapacity {
	all := make([]*types.ConsumedCapacity, len(out.ConsumedCapacity))
	for i := range all {
		all[i] = &out.ConsumedCapacity[i]
	}
	return all
}
