package dynamo

import (
	"context"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"blindpost/shared/table"
	"blindpost/shared/table/dynamo/layout"
)

// Query implements table.Table. It is one request, so a page is empty if all items that
// were read have expired.
func (t *Table) Query(ctx context.Context, q table.Query) (table.Page, error) {
	if err := q.Validate(); err != nil {
		return table.Page{}, err
	}
	var e expression
	condition, some := e.keyCondition(q)
	if !some {
		return table.Page{Items: []table.Item{}}, ctx.Err()
	}
	in := &dynamodb.QueryInput{
		TableName:                 &t.name,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    &condition,
		ExpressionAttributeNames:  e.names,
		ExpressionAttributeValues: e.values,
		ReturnConsumedCapacity:    t.capacity(),
	}
	if q.Limit > 0 {
		in.Limit = aws.Int32(int32(min(q.Limit, math.MaxInt32)))
	}
	var out *dynamodb.QueryOutput
	err := t.read(ctx, func() (err error) {
		out, err = t.client.Query(ctx, in, withoutRetries)
		return err
	})
	if err != nil {
		return table.Page{}, fmt.Errorf("failed to query items: %w", err)
	}
	t.consumed("Query", out.ConsumedCapacity)
	page, err := t.page(q, out)
	if err != nil {
		return table.Page{}, fmt.Errorf("failed to query items: %w", err)
	}
	return page, nil
}

// page selects the items of a query from an answer.
func (t *Table) page(q table.Query, out *dynamodb.QueryOutput) (table.Page, error) {
	page := table.Page{Items: make([]table.Item, 0, len(out.Items))}
	now := t.now()
	for _, m := range out.Items {
		it, err := decodeItem(m)
		if err != nil {
			return table.Page{}, err
		}
		if it == nil {
			return table.Page{}, errForeign
		}
		if past(q, it.Key.Sort) {
			return page, nil // and so is all that follows
		}
		if it.Key.Sort > q.After && !it.Expired(now) {
			page.Items = append(page.Items, *it)
		}
	}
	if len(out.LastEvaluatedKey) == 0 {
		return page, nil
	}
	last, ok := decodeValue(out.LastEvaluatedKey[layout.Sort])
	if !ok || last.Str() <= q.After {
		return table.Page{}, errForeign
	}
	page.More, page.Next = true, last.Str()
	return page, nil
}

// past reports whether a sort key is behind all keys of a query.
func past(q table.Query, sort string) bool {
	if q.Before != "" && sort >= q.Before {
		return true
	}
	return q.Prefix != "" && sort > q.Prefix && !strings.HasPrefix(sort, q.Prefix)
}

// keyCondition is the condition on the sort keys to read; some is false if there can be
// none.
//
// DynamoDB accepts a single condition on the sort key, so two bounds become a BETWEEN,
// which includes its bounds. So page drops a key equal to the upper bound, and the lower
// bound is moved up to the next possible key.
func (e *expression) keyCondition(q table.Query) (condition string, some bool) {
	end := following(q.Prefix)
	cut := q.Before != "" && (end == "" || q.Before < end) // within the prefix
	if cut {
		end = q.Before
	}
	low := q.Prefix
	if q.After != "" && q.After >= q.Prefix {
		low = justAfter(q.After)
	}
	if end != "" && (low > end || q.After >= end || q.Prefix >= end) {
		return "", false
	}

	sort := func() string { return e.name(layout.Sort) }
	condition = e.name(layout.Partition) + " = " + e.value(text(q.Partition))
	switch {
	case low == "" && end == "":
	case low == "":
		condition += " AND " + sort() + " < " + e.value(text(end))
	case low == q.Prefix && !cut:
		condition += " AND begins_with(" + sort() + ", " + e.value(text(q.Prefix)) + ")"
	case end == "":
		condition += " AND " + sort() + " > " + e.value(text(q.After))
	default:
		condition += " AND " + sort() + " BETWEEN " + e.value(text(low)) + " AND " + e.value(text(end))
	}
	return condition, true
}

// justAfter returns a string that is greater than a sort key and not greater than any
// possible sort key behind it: keys have no control characters. If it would be too long,
// justAfter returns the key itself.
func justAfter(key string) string {
	if len(key) >= table.MaxKey {
		return key
	}
	return key + " "
}

// following returns the least string that is greater than all sort keys with a prefix; a
// greater one if that would be too long for a key; "" if there is none.
func following(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch last {
		case unicode.MaxRune:
			continue // has no successor; take that of the character before it
		case surrogates - 1:
			last = surrogatesEnd
		default:
			last++
		}
		if next := prefix + string(last); len(next) <= table.MaxKey {
			return next
		}
	}
	return ""
}

// Code points that are not characters and not in UTF-8.
const (
	surrogates    = 0xd800
	surrogatesEnd = 0xe000
)
