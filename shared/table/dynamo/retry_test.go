package dynamo

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsclient "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"blindpost/shared/table"
)

// secret stands for keys and values that DynamoDB quotes in its messages.
const secret = "s3cr3t"

// failure is an error as the SDK returns it, with the HTTP status of its answer.
func failure(status int, err error) error {
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Op", Err: &awsclient.ResponseError{
		ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err},
		RequestID:     "R",
	}}
}

func code(status int, code string) error {
	return failure(status, &smithy.GenericAPIError{Code: code, Message: secret})
}

// lost is a request that was sent and got no answer.
func lost() error {
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Op", Err: &smithyhttp.RequestSendError{Err: io.ErrUnexpectedEOF}}
}

// unreachable is a request that could not be sent.
func unreachable() error {
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Op", Err: &smithyhttp.RequestSendError{
		Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}}
}

func canceled(reasons ...types.CancellationReason) error {
	return failure(400, &types.TransactionCanceledException{Message: aws.String(secret), CancellationReasons: reasons})
}

func reason(code string) types.CancellationReason {
	return types.CancellationReason{Code: aws.String(code), Message: aws.String(secret)}
}

var putOp = table.Op{Action: table.Put, Key: key("s")}

var twoPuts = []table.Op{putOp, {Action: table.Put, Key: key("t")}}

// kinds are the ways to use the table.
var kinds = []struct {
	name string
	do   func(ctx context.Context, tbl *Table) error
}{
	{"get", func(ctx context.Context, tbl *Table) error { _, err := tbl.Get(ctx, key("s")); return err }},
	{"query", func(ctx context.Context, tbl *Table) error {
		_, err := tbl.Query(ctx, table.Query{Partition: "p"})
		return err
	}},
	{"write", func(ctx context.Context, tbl *Table) error { _, err := tbl.Write(ctx, putOp); return err }},
	{"add", func(ctx context.Context, tbl *Table) error {
		_, err := tbl.Write(ctx, table.Op{Action: table.Update, Key: key("s"), Add: map[string]int64{"n": 1}})
		return err
	}},
	{"transact", func(ctx context.Context, tbl *Table) error { return tbl.Transact(ctx, twoPuts) }},
}

// everyError is what becomes of each error if it does not go away: how often it is
// tried, and the error in the end, for reads, single writes and transactions.
var everyError = []struct {
	name                  string
	err                   error
	reads, writes, transs int
	read, write, trans    error
}{
	{"throttled", code(400, "ThrottlingException"), 12, 12, 12, table.ErrBusy, table.ErrBusy, table.ErrBusy},
	{"throttled, typed", failure(400, &types.ThrottlingException{Message: aws.String(secret)}), 12, 12, 12, table.ErrBusy, table.ErrBusy, table.ErrBusy},
	{"throughput", failure(400, &types.ProvisionedThroughputExceededException{Message: aws.String(secret)}), 12, 12, 12, table.ErrBusy, table.ErrBusy, table.ErrBusy},
	{"request limit", failure(400, &types.RequestLimitExceeded{Message: aws.String(secret)}), 12, 12, 12, table.ErrBusy, table.ErrBusy, table.ErrBusy},
	{"conflict", failure(400, &types.TransactionConflictException{Message: aws.String(secret)}), 12, 12, 12, table.ErrBusy, table.ErrBusy, table.ErrBusy},
	{"conflict of replicas", failure(400, &types.ReplicatedWriteConflictException{Message: aws.String(secret)}), 12, 12, 12, table.ErrBusy, table.ErrBusy, table.ErrBusy},
	{"unreachable", unreachable(), 12, 12, 12, table.ErrBusy, table.ErrBusy, table.ErrBusy},
	{"no such host", &smithyhttp.RequestSendError{Err: &net.DNSError{Err: "no such host"}}, 12, 12, 12, table.ErrBusy, table.ErrBusy, table.ErrBusy},
	{"internal error", failure(500, &types.InternalServerError{Message: aws.String(secret)}), 12, 1, 12, table.ErrBusy, ErrUncertain, ErrUncertain},
	{"unavailable", code(503, "ServiceUnavailable"), 12, 1, 12, table.ErrBusy, ErrUncertain, ErrUncertain},
	{"some 502", code(502, "Whatever"), 12, 1, 12, table.ErrBusy, ErrUncertain, ErrUncertain},
	{"request timeout", code(408, "RequestTimeout"), 12, 1, 12, table.ErrBusy, ErrUncertain, ErrUncertain},
	{"lost answer", lost(), 12, 1, 12, table.ErrBusy, ErrUncertain, ErrUncertain},
	{"garbled answer", &smithy.DeserializationError{Err: errors.New("not JSON")}, 12, 1, 12, table.ErrBusy, ErrUncertain, ErrUncertain},
	{"in progress", failure(400, &types.TransactionInProgressException{Message: aws.String(secret)}), 12, 1, 12, table.ErrBusy, ErrUncertain, ErrUncertain},
	{"validation", code(400, "ValidationException"), 1, 1, 1, table.ErrInvalid, table.ErrInvalid, table.ErrInvalid},
	{"too large", failure(400, &smithy.GenericAPIError{Code: "ValidationException", Message: "Item size has exceeded the maximum allowed size"}),
		1, 1, 1, table.ErrTooLarge, table.ErrTooLarge, table.ErrTooLarge},
	{"updated item too large", failure(400, &smithy.GenericAPIError{Code: "ValidationException", Message: "Item size to update has exceeded the maximum allowed size"}),
		1, 1, 1, table.ErrTooLarge, table.ErrTooLarge, table.ErrTooLarge},
	{"transaction too large", failure(400, &smithy.GenericAPIError{Code: "ValidationException", Message: "the aggregate size of the items in the transaction exceeding the 4MB limit"}),
		1, 1, 1, table.ErrTooLarge, table.ErrTooLarge, table.ErrTooLarge},
	{"key too large", failure(400, &smithy.GenericAPIError{Code: "ValidationException", Message: "Size of hashkey has exceeded the maximum size limit of2048 bytes"}),
		1, 1, 1, table.ErrInvalid, table.ErrInvalid, table.ErrInvalid},
	{"expression too large", failure(400, &smithy.GenericAPIError{Code: "ValidationException", Message: "Invalid UpdateExpression: Expression size has exceeded the maximum allowed size"}),
		1, 1, 1, table.ErrInvalid, table.ErrInvalid, table.ErrInvalid},
	{"access denied", code(400, "AccessDeniedException"), 1, 1, 1, errOther, errOther, errOther},
	{"no table", failure(400, &types.ResourceNotFoundException{Message: aws.String(secret)}), 1, 1, 1, errOther, errOther, errOther},
	{"unknown code", code(400, "SomethingNew"), 1, 1, 1, errOther, errOther, errOther},
	{"parameters differ", failure(400, &types.IdempotentParameterMismatchException{Message: aws.String(secret)}), 1, 1, 1, errOther, errOther, errOther},
	{"cannot be written down", &smithy.SerializationError{Err: errors.New("bad")}, 1, 1, 1, errOther, errOther, errOther},
	{"cancelled, conflict", canceled(reason("None"), reason("TransactionConflict")), 1, 1, 12, errOther, errOther, table.ErrBusy},
	{"cancelled, throttled", canceled(reason("ThrottlingError"), reason("None")), 1, 1, 12, errOther, errOther, table.ErrBusy},
	{"cancelled, throughput", canceled(reason("None"), reason("ProvisionedThroughputExceeded")), 1, 1, 12, errOther, errOther, table.ErrBusy},
	{"cancelled, no reasons", canceled(), 1, 1, 12, errOther, errOther, table.ErrBusy},
	{"cancelled, condition", canceled(reason("None"), reason("ConditionalCheckFailed")), 1, 1, 1, errOther, errOther, table.ErrCondition},
	{"cancelled, validation", canceled(reason("ValidationError"), reason("None")), 1, 1, 1, errOther, errOther, table.ErrInvalid},
	{"cancelled, too large", canceled(types.CancellationReason{Code: aws.String("ValidationError"), Message: aws.String("Item size to update has exceeded the maximum allowed size")}),
		1, 1, 1, errOther, errOther, table.ErrTooLarge},
	{"cancelled, size of the collection", canceled(reason("ItemCollectionSizeLimitExceeded")), 1, 1, 1, errOther, errOther, errOther},
}

func TestEveryError(t *testing.T) {
	for _, c := range everyError {
		for _, kind := range kinds {
			t.Run(c.name+", "+kind.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tries, want := c.writes, c.write
					switch kind.name {
					case "get", "query":
						tries, want = c.reads, c.read
					case "transact":
						tries, want = c.transs, c.trans
					}
					tbl, s := scripted(t, answer{err: c.err})
					begin := time.Now()
					err := kind.do(t.Context(), tbl)
					if err == nil {
						t.Fatal("no error")
					}
					wantError(t, err, want)
					if strings.Contains(err.Error(), secret) {
						t.Errorf("the error quotes the message: %v", err)
					}
					if len(s.calls) != tries {
						t.Errorf("tried %d times, want %d", len(s.calls), tries)
					}
					if took := time.Since(begin); took > 7*time.Second || (tries > 1) != (took > 0) {
						t.Errorf("took %v", took)
					}
				})
			})
		}
	}
}

// The code of an error is told, and the error itself can be had, but not its
// message.
func TestErrorsOfTheServiceKeepTheirCode(t *testing.T) {
	tbl, _ := scripted(t, answer{err: code(400, "AccessDeniedException")})
	_, err := tbl.Get(t.Context(), key("s"))
	if want := "failed to get an item: dynamodb: AccessDeniedException (HTTP 400)"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "AccessDeniedException" {
		t.Errorf("error %v is no APIError any more", err)
	}
}

func TestPausesDoubleAndAreRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 1<<64 - 1
		for _, c := range []struct {
			name string
			rand uint64
			want []time.Duration // milliseconds, rounded
		}{
			{"longest", most, []time.Duration{25, 50, 100, 200, 400, 800, 1000, 1000, 1000, 1000, 1000}},
			{"half", most / 2, []time.Duration{12, 25, 50, 100, 200, 400, 500, 500, 500, 500, 500}},
			{"none", 0, make([]time.Duration, 11)},
		} {
			s := &script{t: t, answers: []answer{{err: code(400, "ThrottlingException")}}}
			tbl := New(s, Options{Table: "T", Rand: func() uint64 { return c.rand }})
			_, err := tbl.Write(t.Context(), putOp)
			wantError(t, err, table.ErrBusy)
			for i, want := range c.want {
				pause := s.calls[i+1].at.Sub(s.calls[i].at)
				if diff := pause - want*time.Millisecond; diff < -time.Millisecond || diff > time.Millisecond {
					t.Errorf("%s: pause %d is %v, want %v ms", c.name, i, pause, int64(want))
				}
			}
		}
	})
}

func TestTroubleThatPasses(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				busy := answer{err: code(400, "ThrottlingException")}
				tbl, s := scripted(t, busy, busy, busy, answer{})
				if err := kind.do(t.Context(), tbl); err != nil && kind.name != "get" {
					t.Error(err)
				} else if kind.name == "get" {
					wantError(t, err, table.ErrNotFound)
				}
				if len(s.calls) != 4 {
					t.Errorf("the requests were %q", s.names())
				}
			})
		})
	}
}

// With too little time left for the next pause, the answer comes now and not when
// the time is up.
func TestGivesUpBeforeTheDeadline(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tbl, _ := scripted(t, answer{err: code(400, "ThrottlingException")})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := kind.do(ctx, tbl)
				wantError(t, err, table.ErrBusy)
				if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the deadline passed: %v", err)
				}
			})
		})
	}
}

func TestCancelledInAPause(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tbl, s := scripted(t, answer{err: code(400, "ThrottlingException")})
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, cancel)
				begin := time.Now()
				err := kind.do(ctx, tbl)
				wantError(t, err, context.Canceled)
				if took := time.Since(begin); took != 100*time.Millisecond {
					t.Errorf("returned after %v", took)
				}
				for _, c := range s.calls {
					if c.at.Sub(begin) > 100*time.Millisecond {
						t.Errorf("a request after the end: %q", s.names())
					}
				}
			})
		})
	}
}

func TestCancelledBefore(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			tbl, s := scripted(t, answer{})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			wantError(t, kind.do(ctx, tbl), context.Canceled)
			wantCalls(t, s, "")
		})
	}
}

// A write whose context ends under way may be done or not; a read is just over.
func TestCancelledUnderWay(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			tbl, s := scripted(t, answer{do: cancel, err: &smithy.CanceledError{Err: context.Canceled}})
			err := kind.do(ctx, tbl)
			if !errors.Is(err, context.Canceled) || errors.Is(err, table.ErrBusy) {
				t.Errorf("error %v", err)
			}
			if uncertain := kind.name != "get" && kind.name != "query"; errors.Is(err, ErrUncertain) != uncertain {
				t.Errorf("error %v, uncertain should be %v", err, uncertain)
			}
			if len(s.calls) != 1 {
				t.Errorf("the requests were %q", s.names())
			}
		})
	}
}

// tokens are those of the transactions that were sent, as letters: A for the
// first, B for the next other one.
func (s *script) tokens() string {
	letters := map[string]string{}
	var list []string
	for _, c := range s.calls {
		if letters[c.token] == "" {
			letters[c.token] = string(rune('A' + len(letters)))
		}
		list = append(list, letters[c.token])
	}
	return strings.Join(list, "")
}

// While it is open whether a transaction was done, the same request is sent again
// under the same token; once it is settled that it was not, the next is a new one.
func TestTokens(t *testing.T) {
	throttled, conflict := answer{err: code(400, "ThrottlingException")}, answer{err: canceled(reason("None"), reason("TransactionConflict"))}
	open, progress := answer{err: lost()}, answer{err: failure(400, &types.TransactionInProgressException{})}
	for _, c := range []struct {
		name    string
		answers []answer
		tokens  string
		want    error
	}{
		{"at once", []answer{{}}, "A", nil},
		{"lost, then done", []answer{open, {}}, "AA", nil},
		{"lost, in progress, done", []answer{open, progress, progress, {}}, "AAAA", nil},
		{"throttled, then done", []answer{throttled, throttled, {}}, "ABC", nil},
		{"lost, throttled, done", []answer{open, throttled, throttled, {}}, "AAAA", nil},
		{"conflict, then done", []answer{conflict, conflict, {}}, "ABC", nil},
		{"lost, conflict, lost, done", []answer{open, conflict, open, {}}, "AAAA", nil},
		{"lost, expired item, done", []answer{open, {err: canceled(refusedReason(gone), reason("None"))}, {}}, "AAB", nil},
		{"expired item, lost, done", []answer{{err: canceled(refusedReason(gone), reason("None"))}, open, {}}, "ABB", nil},
		{"expired item, lost, written by others, done", []answer{{err: canceled(refusedReason(gone), reason("None"))}, open,
			{err: canceled(refusedReason(fresh), reason("None"))}, {}}, "ABBC", nil},
		{"lost, condition", []answer{open, {err: canceled(reason("None"), reason("ConditionalCheckFailed"))}}, "AA", table.ErrCondition},
		{"throttled, then lost for good", []answer{throttled, open}, "ABBBBBBBBBBB", ErrUncertain},
		{"lost, then throttled for good", []answer{open, throttled}, "AAAAAAAAAAAA", ErrUncertain},
		{"lost, then denied", []answer{open, {err: code(400, "AccessDeniedException")}}, "AA", ErrUncertain},
		{"lost, conflict for good", []answer{open, conflict}, "AAAAAAAAAAAA", ErrUncertain},
		{"conflict for good", []answer{conflict}, "ABCDEFGHIJKL", table.ErrBusy},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tbl, s := scripted(t, c.answers...)
				// A clock that moves, so that a new request is seen to be one.
				tbl.now = func() time.Time { return start.Add(time.Duration(len(s.calls)) * time.Second) }
				ops := []table.Op{{Action: table.Update, Key: key("s"), Add: map[string]int64{"n": 1}}, putOp}
				ops[1].Key = key("t")
				wantError(t, tbl.Transact(t.Context(), ops), c.want)
				if got := s.tokens(); got != c.tokens {
					t.Errorf("tokens %s, want %s", got, c.tokens)
				}
				for i, one := range s.calls {
					for _, other := range s.calls[:i] {
						if (one.token == other.token) != reflect.DeepEqual(items(one), items(other)) {
							t.Error("requests and tokens do not match")
						}
					}
					if len(one.token) < 16 || len(one.token) > 36 {
						t.Errorf("token of %d characters", len(one.token))
					}
				}
			})
		})
	}
}

func items(c call) []types.TransactWriteItem {
	return c.in.(*dynamodb.TransactWriteItemsInput).TransactItems
}
