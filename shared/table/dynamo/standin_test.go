//go:build aws

package dynamo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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
)

// The tests with the build tag aws need a stand-in for DynamoDB. It is the one at
// BLINDPOST_DYNAMO_ENDPOINT, or .ci/standins/dynamo starts one. Without either
// they fail.
//
// How the stand-in, dynoxide 1.5.0 (crate 3.2.0), differs from AWS as far as it
// matters here:
//   - It does one request after another, so there are no conflicts between
//     transactions and no throttling. AWS has both; troubled injects them.
//   - Its answer to a write never gets lost; troubled loses those of transactions.
//   - It gives a reason for each operation of a cancelled transaction that
//     fails. AWS documents a reason for each operation, but not that it looks at
//     all of them.
//   - It removes expired items when its own clock says so, within about a
//     minute. AWS takes hours or days. The clock of the suite is far ahead of it.
//   - An UpdateItem that creates an item returns its key as the old item. AWS
//     returns nothing ("If you update a nonexistent item, ALL_OLD has no effect").
//     faithful puts that right.
const endpointVariable = "BLINDPOST_DYNAMO_ENDPOINT"

var standin faithful

// startStandin is called by TestMain.
func startStandin() (stop func(), err error) {
	endpoint := os.Getenv(endpointVariable)
	stop = func() {}
	if endpoint == "" {
		if endpoint, stop, err = serveStandin(); err != nil {
			return nil, fmt.Errorf("failed to start a stand-in for DynamoDB (%s is not set): %w", endpointVariable, err)
		}
	}
	standin = faithful{dynamodb.New(dynamodb.Options{
		Region:       "eu-central-1",
		BaseEndpoint: aws.String(endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
	})}
	return stop, nil
}

func serveStandin() (endpoint string, stop func(), err error) {
	script, err := filepath.Abs("../../../.ci/standins/dynamo")
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(script, "serve")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // it ends with this process, and the stand-in with it
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		stdin.Close()
		cmd.Wait()
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, err
	}
	return strings.TrimSpace(line), stop, nil
}

var tables atomic.Int64

// freshTable creates an unused table.
func freshTable(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("blindpost-%d-%d", time.Now().UnixNano(), tables.Add(1))
	if err := CreateTable(context.Background(), standin, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := standin.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Errorf("failed to delete the table: %v", err)
		}
	})
	return name
}

// faithful is the stand-in, made to do as AWS does.
type faithful struct{ *dynamodb.Client }

// UpdateItem returns no old item if it creates one. The stand-in's answer would be
// the same for an item without attributes, so this finds out with the update
// itself, in one request for an item that is there and another for one that is not.
func (c faithful) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	and := func(condition string) *dynamodb.UpdateItemInput {
		narrowed := *in
		narrowed.ConditionExpression = aws.String(*in.ConditionExpression + " AND " + condition)
		return &narrowed
	}
	for {
		out, err := c.Client.UpdateItem(ctx, and("attribute_exists(pk)"), o...)
		var failed *types.ConditionalCheckFailedException
		if !errors.As(err, &failed) || failed.Item != nil {
			return out, err
		}
		out, err = c.Client.UpdateItem(ctx, and("attribute_not_exists(pk)"), o...)
		if errors.As(err, &failed) && failed.Item != nil {
			continue // created in between
		}
		if out != nil {
			out.Attributes = nil
		}
		return out, err
	}
}
