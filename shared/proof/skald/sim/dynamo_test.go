//go:build aws

package sim

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"blindpost/shared/proof/engine"
	"blindpost/shared/table"
	"blindpost/shared/table/dynamo"
	"blindpost/shared/table/dynamo/layout"
)

// The schedules over table/dynamo, which needs a stand-in for DynamoDB: the one at
// BLINDPOST_DYNAMO_ENDPOINT, or .ci/standins/dynamo starts one. Without either the
// tests fail.

func init() { dynamoStore = openDynamo }

// The schedules of the functions hold over DynamoDB, as far as the stand-in is like
// it.
func TestSimulationOverDynamo(t *testing.T) {
	wantAllHold(t, Options{Start: engine.FirstSeed(t), Seeds: 500 / slowdown, FunctionsOnly: true, Store: openDynamo(t)})
}

// And they are the same schedules, step by step.
func TestASeedIsAScheduleOverDynamo(t *testing.T) {
	store := openDynamo(t)
	start := engine.FirstSeed(t)
	for seed := start; seed < start+20/slowdown; seed++ {
		first := one(t, seed, &Options{Store: Mem()}, nil)
		other := one(t, seed, &Options{Store: store}, nil)
		if first.hash != other.hash || first.counts != other.counts {
			t.Errorf("seed %d: over mem %x %+v, over dynamo %x %+v", seed, first.hash, first.counts, other.hash, other.counts)
		}
	}
}

func openDynamo(t *testing.T) Store {
	t.Helper()
	endpoint := os.Getenv("BLINDPOST_DYNAMO_ENDPOINT")
	if endpoint == "" {
		endpoint = serveStandin(t)
	}
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: &endpoint, HTTPClient: startBridge(t),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	var tables atomic.Int64
	began := time.Now().UnixNano()
	return Store{
		Name: "dynamo",
		Open: func(_ string, now func() time.Time) (table.Table, func() error, error) {
			name := fmt.Sprintf("sim-%d-%d", began, tables.Add(1))
			if err := createTable(client, name); err != nil {
				return nil, nil, err
			}
			closing := func() error {
				_, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
				return err
			}
			return dynamo.New(client, dynamo.Options{Table: name, Now: now}), closing, nil
		},
	}
}

// createTable makes a table without time to live: the clock of a schedule is decades
// behind that of the stand-in, which would remove everything that ever expires.
func createTable(client *dynamodb.Client, name string) error {
	key := func(name string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: aws.String(name), KeyType: kind}
	}
	text := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS}
	}
	_, err := client.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{key(layout.Partition, types.KeyTypeHash), key(layout.Sort, types.KeyTypeRange)},
		AttributeDefinitions: []types.AttributeDefinition{text(layout.Partition), text(layout.Sort)},
	})
	return err
}

// bridge carries HTTP requests out of the bubble of a schedule, to a goroutine that
// lives outside. Its channels are made outside as well, and to wait for one of those
// does not count as waiting in the bubble: its time stands still meanwhile.
type bridge struct {
	calls chan *call
	// free are channels for answers, made outside too.
	free chan chan answer
}

type call struct {
	method, url string
	header      http.Header
	body        []byte
	done        chan answer
}

type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
}

// callers is how many calls are carried at a time.
const callers = 16

func startBridge(t *testing.T) *bridge {
	b := &bridge{calls: make(chan *call), free: make(chan chan answer, callers)}
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	for range callers {
		b.free <- make(chan answer, 1)
		go func() {
			for c := range b.calls {
				c.done <- carry(transport, c)
			}
		}()
	}
	t.Cleanup(func() {
		close(b.calls)
		transport.CloseIdleConnections()
	})
	return b
}

func carry(transport http.RoundTripper, c *call) answer {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, bytes.NewReader(c.body))
	if err != nil {
		return answer{err: err}
	}
	req.Header = c.header
	res, err := transport.RoundTrip(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, body, err}
}

// Do is called in a bubble.
func (b *bridge) Do(req *http.Request) (*http.Response, error) {
	c := &call{method: req.Method, url: req.URL.String(), header: req.Header.Clone()}
	if req.Body != nil {
		var err error
		if c.body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
	}
	c.done = <-b.free
	b.calls <- c
	a := <-c.done
	b.free <- c.done
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{
		StatusCode: a.status, Status: http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}, nil
}

// serveStandin starts a stand-in that ends with the test.
func serveStandin(t *testing.T) string {
	script, err := filepath.Abs("../../../../.ci/standins/dynamo")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, "serve")
	cmd.Stderr = os.Stderr
	stdin, errIn := cmd.StdinPipe()
	stdout, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("failed to start a stand-in for DynamoDB: %v", err)
	}
	return strings.TrimSpace(line)
}
