package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"blindpost/shared/table/dynamo/layout"
)

// Admin is the part of *dynamodb.Client that CreateTable uses.
type Admin interface {
	dynamodb.DescribeTableAPIClient
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

var _ Admin = (*dynamodb.Client)(nil)

// createWait is how long CreateTable waits until the table exists.
const createWait = 2 * time.Minute

// CreateTable creates a DynamoDB table for this package. It is for tests and emulators:
// in a deployment the stack declares the table, and the functions may not create one.
func CreateTable(ctx context.Context, client Admin, name string) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &name,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(layout.Partition), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(layout.Sort), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(layout.Partition), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(layout.Sort), KeyType: types.KeyTypeRange},
		},
	})
	if err != nil {
		return fmt.Errorf("failed to create the table: %w", err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client)
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, createWait); err != nil {
		return fmt.Errorf("failed to wait for the table: %w", err)
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(layout.Expires),
			Enabled:       aws.Bool(true),
		},
	})
	if err != nil {
		return fmt.Errorf("failed to turn on time to live: %w", err)
	}
	return nil
}
