package dynamo

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// capacity selects whether DynamoDB reports the cost of a request.
func (t *Table) capacity() types.ReturnConsumedCapacity {
	if t.onConsumed == nil {
		return types.ReturnConsumedCapacityNone
	}
	return types.ReturnConsumedCapacityTotal
}

func (t *Table) consumed(request string, reports ...*types.ConsumedCapacity) {
	if t.onConsumed == nil {
		return
	}
	units := 0.0
	for _, r := range reports {
		if r != nil && r.CapacityUnits != nil {
			units += *r.CapacityUnits
		}
	}
	t.onConsumed(Consumed{Request: request, Units: units})
}
