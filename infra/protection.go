//go:build cdk

package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/customresources"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// newProtection turns on the deletion protection of the table as the last step of a
// deployment. A table that is made with it could not be deleted when the first deployment
// fails and is rolled back: it would be left behind, or the rollback would fail too.
//
// It is a call of DynamoDB by a function of the CDK, which runs at no other time. When the
// stack is deleted, or no longer wants the protection, the function turns it off; the
// deletion policy then keeps the table.
func (r *relay) newProtection(own awsdynamodb.Table) {
	before := *r.Node().Children()
	log := r.newLogGroup(r.Stack, "ProtectLog")
	role := awsiam.NewRole(r.Stack, str("ProtectRole"), &awsiam.RoleProps{
		Description: str("Blindpost: deletion protection of the table"),
		AssumedBy:   awsiam.NewServicePrincipal(str("lambda.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"permissions": document([]permission{
			{[]string{"dynamodb:UpdateTable"}, []string{*own.TableArn()}},
			{[]string{"logs:CreateLogStream", "logs:PutLogEvents"}, []string{*log.LogGroupArn()}},
		})},
	})
	set := func(on bool) *customresources.AwsSdkCall {
		return &customresources.AwsSdkCall{
			Service:            str("DynamoDB"),
			Action:             str("updateTable"),
			Parameters:         map[string]any{"TableName": own.TableName(), "DeletionProtectionEnabled": on},
			PhysicalResourceId: customresources.PhysicalResourceId_Of(own.TableName()),
			OutputPaths:        jsii.Strings("TableDescription.DeletionProtectionEnabled"),
		}
	}
	off := set(false)
	// If this fails, the deletion of the table fails, and says why.
	off.IgnoreErrorCodesMatching = str(".*")
	protect := customresources.NewAwsCustomResource(r.Stack, str("Protect"), &customresources.AwsCustomResourceProps{
		OnCreate:            set(true),
		OnUpdate:            set(true),
		OnDelete:            off,
		Role:                role,
		LogGroup:            log,
		InstallLatestAwsSdk: jsii.Bool(false),
		Timeout:             awscdk.Duration_Minutes(jsii.Number(2)),
	})
	for _, child := range before {
		protect.Node().AddDependency(child.(constructs.IDependable))
	}
}
