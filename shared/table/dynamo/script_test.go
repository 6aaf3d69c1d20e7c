package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"blindpost/shared/table"
)

// script is a DynamoDB that answers what a test tells it to. The last answer is
// repeated.
type script struct {
	t       *testing.T
	answers []answer

	mu    sync.Mutex
	calls []call
}

// answer is one answer: an output or an error.
type answer struct {
	out any
	err error
	do  func() // called before it answers
}

// call is a request that was made.
type call struct {
	name  string
	in    any
	at    time.Time
	token string // of a transaction
}

func (s *script) next(name string, in any, o []func(*dynamodb.Options)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var options dynamodb.Options
	for _, set := range o {
		set(&options)
	}
	if _, ok := options.Retryer.(aws.NopRetryer); !ok {
		s.t.Errorf("%s leaves the client's own retries on", name)
	}
	c := call{name: name, in: in, at: time.Now()}
	if tx, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
		c.token = aws.ToString(tx.ClientRequestToken)
	}
	s.calls = append(s.calls, c)
	a := s.answers[min(len(s.calls), len(s.answers))-1]
	if a.do != nil {
		a.do()
	}
	return a.out, a.err
}

func reply[Out any](s *script, name string, in any, o []func(*dynamodb.Options)) (*Out, error) {
	out, err := s.next(name, in, o)
	if err != nil {
		return nil, err
	}
	if out == nil {
		return new(Out), nil
	}
	return out.(*Out), nil
}

func (s *script) GetItem(_ context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return reply[dynamodb.GetItemOutput](s, "GetItem", in, o)
}

func (s *script) Query(_ context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return reply[dynamodb.QueryOutput](s, "Query", in, o)
}

func (s *script) PutItem(_ context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return reply[dynamodb.PutItemOutput](s, "PutItem", in, o)
}

func (s *script) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return reply[dynamodb.UpdateItemOutput](s, "UpdateItem", in, o)
}

func (s *script) DeleteItem(_ context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return reply[dynamodb.DeleteItemOutput](s, "DeleteItem", in, o)
}

func (s *script) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return reply[dynamodb.TransactWriteItemsOutput](s, "TransactWriteItems", in, o)
}

// names are the requests that were made, in short.
func (s *script) names() string {
	var names []string
	for _, c := range s.calls {
		names = append(names, c.name)
	}
	return strings.Join(names, " ")
}

// start is the time at which the tests begin; a bubble of synctest has its own.
var start = time.Date(2030, 1, 2, 3, 4, 5, 600_000_000, time.UTC)

// scripted makes a table over a script. The random numbers count up from large
// ones, so that pauses are long and tokens differ.
func scripted(t *testing.T, answers ...answer) (*Table, *script) {
	s := &script{t: t, answers: answers}
	drawn := uint64(1) << 63
	return New(s, Options{Table: "T", Now: func() time.Time { return start }, Rand: func() uint64 {
		drawn += 1 << 40
		return drawn
	}}), s
}

func key(sort string) table.Key { return table.Key{Partition: "p", Sort: sort} }

// stored is an item as DynamoDB has it.
func stored(sort string, attrs table.Attrs, expires time.Time) attributes {
	return encodeItem(key(sort), attrs, expires)
}

var placeholder = regexp.MustCompile(`[#:][0-9]+`)

// spell writes an expression with its names and values in their places. It fails
// when they are not exactly those that the request has, as AWS would.
func spell(t *testing.T, names map[string]string, values attributes, expressions ...*string) string {
	t.Helper()
	used := map[string]bool{}
	var parts []string
	for _, e := range expressions {
		if e == nil {
			continue
		}
		parts = append(parts, placeholder.ReplaceAllStringFunc(*e, func(p string) string {
			used[p] = true
			if name, ok := names[p]; ok {
				return name
			}
			if v, ok := values[p]; ok {
				return spellValue(v)
			}
			t.Errorf("placeholder %s is not defined", p)
			return p
		}))
	}
	for _, p := range append(slices.Collect(maps.Keys(names)), slices.Collect(maps.Keys(values))...) {
		if !used[p] {
			t.Errorf("placeholder %s is not used", p)
		}
	}
	if (names != nil && len(names) == 0) || (values != nil && len(values) == 0) {
		t.Error("names or values are there, but empty")
	}
	return strings.Join(parts, " IF ")
}

func spellValue(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return `"` + v.Value + `"`
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("0x%x", v.Value)
	}
	return "?"
}

func spellItem(m attributes) string {
	var parts []string
	for name, v := range m {
		parts = append(parts, name+"="+spellValue(v))
	}
	sort.Strings(parts)
	return "{" + strings.Join(parts, " ") + "}"
}

// spellCall writes a single write or the parts of a transaction.
func spellCall(t *testing.T, c call) string {
	t.Helper()
	switch in := c.in.(type) {
	case *dynamodb.PutItemInput:
		return "put " + spellItem(in.Item) + spellIf(t, in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.ConditionExpression)
	case *dynamodb.UpdateItemInput:
		return "update " + spellItem(in.Key) + " " + spell(t, in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.UpdateExpression, in.ConditionExpression)
	case *dynamodb.DeleteItemInput:
		return "delete " + spellItem(in.Key) + spellIf(t, in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.ConditionExpression)
	case *dynamodb.TransactWriteItemsInput:
		var parts []string
		for _, it := range in.TransactItems {
			switch {
			case it.Put != nil:
				parts = append(parts, "put "+spellItem(it.Put.Item)+spellIf(t, it.Put.ExpressionAttributeNames, it.Put.ExpressionAttributeValues, it.Put.ConditionExpression))
			case it.Update != nil:
				parts = append(parts, "update "+spellItem(it.Update.Key)+" "+
					spell(t, it.Update.ExpressionAttributeNames, it.Update.ExpressionAttributeValues, it.Update.UpdateExpression, it.Update.ConditionExpression))
			case it.Delete != nil:
				parts = append(parts, "delete "+spellItem(it.Delete.Key)+spellIf(t, it.Delete.ExpressionAttributeNames, it.Delete.ExpressionAttributeValues, it.Delete.ConditionExpression))
			case it.ConditionCheck != nil:
				parts = append(parts, "check "+spellItem(it.ConditionCheck.Key)+
					spellIf(t, it.ConditionCheck.ExpressionAttributeNames, it.ConditionCheck.ExpressionAttributeValues, it.ConditionCheck.ConditionExpression))
			}
		}
		return strings.Join(parts, "; ")
	}
	return c.name
}

func spellIf(t *testing.T, names map[string]string, values attributes, condition *string) string {
	t.Helper()
	if condition == nil {
		if names != nil || values != nil {
			t.Error("names or values without an expression")
		}
		return ""
	}
	return " IF " + spell(t, names, values, condition)
}

func wantCalls(t *testing.T, s *script, want string) {
	t.Helper()
	if got := s.names(); got != want {
		t.Errorf("the requests were %q, want %q", got, want)
	}
}

// errOther is any error that is none of the contract.
var errOther = errors.New("an error that is none of the contract")

func wantError(t *testing.T, err error, want error) {
	t.Helper()
	if (want == errOther && err == nil) || (want != errOther && !errors.Is(err, want)) {
		t.Errorf("error %v, want %v", err, want)
	}
	for _, other := range []error{table.ErrBusy, table.ErrCondition, table.ErrInvalid, table.ErrTooLarge, ErrUncertain} {
		if want != other && errors.Is(err, other) {
			t.Errorf("error %v is also %v", err, other)
		}
	}
}
