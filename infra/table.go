//go:build cdk

package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"

	"blindpost/shared/table/dynamo/layout"
)

// newTable makes the one table, as shared/table/dynamo wants it. It is paid by the
// request and encrypted with the key that DynamoDB owns, which costs nothing.
//
// A protected table stays when the stack is deleted, but not when the first deployment
// fails. Its protection against other deletions is turned on last, see newProtection.
func newTable(stack awscdk.Stack, s *settings) awsdynamodb.Table {
	removal := awscdk.RemovalPolicy_DESTROY
	if s.deletionProtection {
		removal = awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE
	}
	return awsdynamodb.NewTable(stack, str("Table"), &awsdynamodb.TableProps{
		PartitionKey:        &awsdynamodb.Attribute{Name: str(layout.Partition), Type: awsdynamodb.AttributeType_STRING},
		SortKey:             &awsdynamodb.Attribute{Name: str(layout.Sort), Type: awsdynamodb.AttributeType_STRING},
		TimeToLiveAttribute: str(layout.Expires),
		BillingMode:         awsdynamodb.BillingMode_PAY_PER_REQUEST,
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(s.pointInTimeRecovery),
		},
		RemovalPolicy: removal,
	})
}
