//go:build cdk

package main

import (
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfront"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsroute53"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// relay is all of one deployment, in the order in which it is made.
type relay struct {
	awscdk.Stack
	settings *settings

	table     awsdynamodb.ITable // the one in use
	queues    *queues
	api       awsapigatewayv2.WebSocketApi
	origin    awssecretsmanager.Secret // nil without the edge
	functions map[string]*function

	stage       awsapigatewayv2.WebSocketStage
	http        awsapigatewayv2.HttpApi    // nil without the edge
	httpStage   awsapigatewayv2.HttpStage  // nil without the edge
	loggingRole awsiam.Role                // nil if the region has one already
	edge        awscloudfront.Distribution // nil without the edge
	binary      *binaryFront               // nil without the binary front
	frontSecret awssecretsmanager.Secret   // nil without any binary front
	zone        awsroute53.IHostedZone     // nil without a hosted zone
}

// newStack makes the stack below scope, for any account and region: a deployment decides.
func newStack(scope constructs.Construct, s *settings, code artifacts) awscdk.Stack {
	stack := awscdk.NewStack(scope, str(s.stackName), &awscdk.StackProps{
		Description: str("Blindpost, a relay that cannot read what it carries"),
	})
	r := &relay{Stack: stack, settings: s}
	own := newTable(stack, s)
	r.table = own
	if s.tableName != "" {
		// The stack keeps its own table, so that a mistake loses nothing.
		r.table = awsdynamodb.Table_FromTableName(stack, str("TableInUse"), &s.tableName)
	}
	r.queues = newQueues(stack)
	r.api = newAPI(stack)
	if s.edge {
		r.origin = newOriginSecret(stack)
	}
	if s.allFronts() != nil {
		r.frontSecret = newFrontSecret(stack)
		r.output("FrontSecretArn", "ARN of the secret that the functions send to binary fronts", *r.frontSecret.SecretArn())
	}
	r.newFunctions(code.function)
	r.newEvents()
	r.newRoutes()
	r.newStage()
	if s.edge {
		r.newHTTP()
	}
	r.output("ApiUrl", "WebSocket address of API Gateway itself", r.apiURL())
	r.zone = r.newZone()
	if s.binaryFront {
		r.newBinaryFront(code.image)
	}
	r.newFront()
	if s.alarms != noAlarms {
		r.newAlarms()
	}
	if s.dashboard {
		r.newDashboard()
	}
	r.output("CallbackUrl", "where the functions post to connections", r.callbackURL())
	for _, name := range invoked {
		r.output(strings.ToUpper(name[:1])+name[1:]+"Function", "name of functions/"+name+", for blindpost serve --lambda", *r.functions[name].FunctionName())
	}
	r.output("TableName", "the DynamoDB table", *r.table.TableName())
	r.output("IngressDeadLettersUrl", "frames and disconnects that could not be handled", *r.queues.ingressDead.QueueUrl())
	r.output("JobsDeadLettersUrl", "jobs that could not be done", *r.queues.jobsDead.QueueUrl())
	if s.deletionProtection {
		r.newProtection(own)
	}
	r.suppressFindings()
	if !s.pointInTimeRecovery {
		suppress(own, "AwsSolutions-DDB3", "The operator has turned point-in-time recovery off.")
	}
	return stack
}

func (r *relay) output(id, description, value string) {
	awscdk.NewCfnOutput(r.Stack, str(id), &awscdk.CfnOutputProps{Description: str(description), Value: str(value)})
}

// arn is an ARN of this account in this region.
func (r *relay) arn(service, resource string) string {
	return fmt.Sprintf("arn:%s:%s:%s:%s:%s", *r.Partition(), service, *r.Region(), *r.Account(), resource)
}

// newLogGroup makes a log group that is deleted with the stack. Logs are encrypted by
// CloudWatch's own key.
func (r *relay) newLogGroup(scope constructs.Construct, id string) awslogs.LogGroup {
	return awslogs.NewLogGroup(scope, str(id), &awslogs.LogGroupProps{
		Retention:     r.settings.logRetention,
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
}

func str(s string) *string { return jsii.String(s) }
