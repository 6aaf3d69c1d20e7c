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
	// replace: the stored item has expired, and the update has to replace it.
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
			if tries.turn(v) {
				continue
			}
		} else if err := t.singleFailure(ctx, err); err != nil {
			return table.Item{}, err
		}
		if stop := tries.pause(ctx); stop != nil {
			return table.Item{}, fmt.Errorf("failed to write an item: %w: %w", stop, plain(err))
		}
	}
}

// singleFailure is the error of a single write that is not tried again, nil if it
// is.
func (t *Table) singleFailure(ctx context.Context, err error) error {
	class := classify(err)
	if class == later {
		return nil
	}
	if class == denied {
		return fmt.Errorf("failed to write an item: %w", refusal(err))
	}
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("failed to write an item: %w: %w", ErrUncertain, ended)
	}
	return fmt.Errorf("failed to write an item: %w: %w", ErrUncertain, plain(err))
}

// replacement is the Put that an update comes to where nothing is stored but an
// item that has expired.
func replacement(op table.Op, now time.Time) (table.Op, error) {
	next, err := table.Apply(op, nil, now)
	if err != nil {
		return table.Op{}, err
	}
	return table.Op{Action: table.Put, Key: op.Key, Conds: []table.Cond{table.IfAbsent()}, Set: next.Attrs, Expires: next.Expires}, nil
}

// verdict is why DynamoDB found that a condition had failed.
type verdict uint8

const (
	// unchanged: nothing speaks against the request. Something was in its way.
	unchanged verdict = iota
	// revived: somebody else wrote the item anew that was to be replaced, so it
	// is an update again.
	revived
	// expired: the item has expired, and the update has to replace it.
	expired
)

// judge looks at the item that failed the condition of an operation. It returns
// an error if the operation fails.
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

// oldItem is what Write returns of the item that was stored before.
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
