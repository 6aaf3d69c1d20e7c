package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"blindpost/shared/table"
)

// Write implements table.Table. See the package documentation for ErrUncertain.
func (t *Table) Write(ctx context.Context, op table.Op) (table.Item, error) {
	if err := table.ValidateWrite(op); err != nil {
		return table.Item{}, err
	}
	return t.write(ctx, op)
}

func (t *Table) write(ctx context.Context, op table.Op) (table.Item, error) {
	tries := t.tries()
	// replace: the stored item has expired, and the update must replace it.
	replace := false
	for {
		if err := ctx.Err(); err != nil {
			return table.Item{}, err
		}
		now := t.now()
		sent := op
		if replace {
			var err error
			if sent, err = replacement(op, now); err != nil {
				return table.Item{}, err
			}
		}
		stored, err := t.send(ctx, sent, now)
		if err == nil {
			return oldItem(stored, now)
		}

		var failed *types.ConditionalCheckFailedException
		if errors.As(err, &failed) {
			v, err := judge(op, replace, failed.Item, now)
			if err != nil {
				return table.Item{}, err
			}
			replace = v == expired
			if tries.replaceNow(v) {
				continue
			}
		} else if err := t.singleFailure(ctx, err); err != nil {
			return table.Item{}, err
		}
		if stop := tries.pause(ctx); stop != nil {
			return table.Item{}, fmt.Errorf("failed to write an item: %w: %w", stop, withoutMessage(err))
		}
	}
}

// singleFailure is the error of a single write that must not be retried, otherwise nil.
func (t *Table) singleFailure(ctx context.Context, err error) error {
	class := classify(err)
	if class == transientError {
		return nil
	}
	if class == permanentError {
		return fmt.Errorf("failed to write an item: %w", refusal(err))
	}
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("failed to write an item: %w: %w", ErrUncertain, ended)
	}
	return fmt.Errorf("failed to write an item: %w: %w", ErrUncertain, withoutMessage(err))
}

// replacement is the Put that replaces an expired item, with the effect of the update on
// an absent one.
func replacement(op table.Op, now time.Time) (table.Op, error) {
	next, err := table.Apply(op, nil, now)
	if err != nil {
		return table.Op{}, err
	}
	return table.Op{Action: table.Put, Key: op.Key, Conds: []table.Cond{table.IfAbsent()}, Set: next.Attrs, Expires: next.Expires}, nil
}

// verdict says how to retry after DynamoDB has reported a failed condition.
type verdict uint8

const (
	// unchanged: send the same request again; the item has changed meanwhile.
	unchanged verdict = iota
	// revived: send the update again; another writer has written the expired item.
	revived
	// expired: replace the item, which has expired.
	expired
)

// judge compares an operation with the item that failed its condition. It returns an
// error if the operation fails.
func judge(op table.Op, replaced bool, stored attributes, now time.Time) (verdict, error) {
	if op.Action != table.Update {
		return unchanged, &table.ConditionError{}
	}
	if replaced {
		return revived, nil
	}
	old, err := decodeItem(stored)
	if err != nil {
		return unchanged, err
	}
	if _, err := table.Apply(op, old, now); err != nil {
		return unchanged, err
	}
	if old != nil && old.Expired(now) {
		return expired, nil
	}
	return unchanged, nil
}

// send does an operation as one request and returns the item as it was before.
func (t *Table) send(ctx context.Context, op table.Op, now time.Time) (attributes, error) {
	var e expression
	condition := e.condition(op, now)
	switch op.Action {
	case table.Put:
		out, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName:                 &t.name,
			Item:                      encodeItem(op.Key, op.Set, op.Expires),
			ConditionExpression:       condition,
			ExpressionAttributeNames:  e.names,
			ExpressionAttributeValues: e.values,
			ReturnValues:              types.ReturnValueAllOld,
			ReturnConsumedCapacity:    t.capacity(),
		}, withoutRetries)
		if err != nil {
			return nil, err
		}
		t.consumed("PutItem", out.ConsumedCapacity)
		return out.Attributes, nil
	case table.Update:
		update := e.update(op)
		out, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:                           &t.name,
			Key:                                 encodeKey(op.Key),
			UpdateExpression:                    update,
			ConditionExpression:                 condition,
			ExpressionAttributeNames:            e.names,
			ExpressionAttributeValues:           e.values,
			ReturnValues:                        types.ReturnValueAllOld,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			ReturnConsumedCapacity:              t.capacity(),
		}, withoutRetries)
		if err != nil {
			return nil, err
		}
		t.consumed("UpdateItem", out.ConsumedCapacity)
		return out.Attributes, nil
	default:
		out, err := t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName:                 &t.name,
			Key:                       encodeKey(op.Key),
			ConditionExpression:       condition,
			ExpressionAttributeNames:  e.names,
			ExpressionAttributeValues: e.values,
			ReturnValues:              types.ReturnValueAllOld,
			ReturnConsumedCapacity:    t.capacity(),
		}, withoutRetries)
		if err != nil {
			return nil, err
		}
		t.consumed("DeleteItem", out.ConsumedCapacity)
		return out.Attributes, nil
	}
}

// oldItem is the old item that Write returns.
func oldItem(stored attributes, now time.Time) (table.Item, error) {
	it, err := decodeLive(stored, now)
	if err != nil {
		return table.Item{}, fmt.Errorf("failed to read the old item of a write: %w", err)
	}
	if it == nil {
		return table.Item{}, nil
	}
	return *it, nil
}
