//go:build cdk

package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// functionNames are the folders below functions/.
var functionNames = []string{"connect", "message", "disconnect", "sweeper"}

// batch is how many messages a function gets at a time. A batch of frames is at
// most 10 x 256 KB.
const batch = 10

type function struct {
	awslambda.Function
	log  awslogs.LogGroup
	role awsiam.Role
}

// size is what a function gets, in MB and seconds.
type size struct{ memory, timeout float64 }

var sizesOf = map[string]size{
	"connect":    {256, 15},
	"message":    {256, 30},
	"disconnect": {128, 10},
	"sweeper":    {256, 60},
}

func (r *relay) newFunctions(code func(function string) awslambda.Code) {
	r.functions = map[string]*function{}
	for _, name := range functionNames {
		r.functions[name] = r.newFunction(name, code(name))
	}
}

func (r *relay) newFunction(name string, code awslambda.Code) *function {
	id := strings.ToUpper(name[:1]) + name[1:]
	log := r.newLogGroup(r.Stack, id+"Log")
	role := r.newRole(name, id, log)
	env := environment(r.settings.told(name, r.addresses()))
	props := &awslambda.FunctionProps{
		Description:  str("Blindpost: functions/" + name),
		Code:         code,
		Handler:      str("bootstrap"),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: awslambda.Architecture_ARM_64(),
		MemorySize:   jsii.Number(sizesOf[name].memory),
		Timeout:      awscdk.Duration_Seconds(jsii.Number(sizesOf[name].timeout)),
		Environment:  &env,
		Role:         role,
		LogGroup:     log,
		// Lambda itself logs failures only: its lines for each successful call would be
		// most of the cost of the logs. log-level filters our own lines.
		LoggingFormat:         awslambda.LoggingFormat_JSON,
		SystemLogLevelV2:      awslambda.SystemLogLevel_WARN,
		ApplicationLogLevelV2: awslambda.ApplicationLogLevel_TRACE,
	}
	if n, ok := r.settings.reserved[name]; ok {
		props.ReservedConcurrentExecutions = jsii.Number(n)
	}
	if name == "message" || name == "sweeper" {
		// Both answer a message of a queue with the next one: a long queue of a phone
		// is sent in pieces, a timer sets the next. Lambda takes such a chain for a
		// mistake and stops it after 16 calls, unless loops are allowed.
		props.RecursiveLoop = awslambda.RecursiveLoop_ALLOW
	}
	f := awslambda.NewFunction(r.Stack, str(id), props)
	// A stable name that can be typed, for sam local.
	f.Node().DefaultChild().(awslambda.CfnFunction).OverrideLogicalId(str(id))
	return &function{f, log, role}
}

// newEvents lets the queues and the schedule call functions.
func (r *relay) newEvents() {
	r.newSource("message", "IngressSource", r.queues.ingress)
	r.newSource("sweeper", "JobsSource", r.queues.jobs)
	awsevents.NewRule(r.Stack, str("Schedule"), &awsevents.RuleProps{
		Description: str("Blindpost: looks for what no event has cleared away"),
		Schedule:    awsevents.Schedule_Rate(awscdk.Duration_Minutes(jsii.Number(1))),
		// The next round comes by itself: an event that could not be handled is not
		// repeated.
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(r.functions["sweeper"].Function,
			&awseventstargets.LambdaFunctionProps{
				RetryAttempts: jsii.Number(0),
				MaxEventAge:   awscdk.Duration_Minutes(jsii.Number(1)),
			})},
	})
	awslambda.NewEventInvokeConfig(r.Stack, str("ScheduleInvoke"), &awslambda.EventInvokeConfigProps{
		Function:      r.functions["sweeper"].Function,
		RetryAttempts: jsii.Number(0),
		MaxEventAge:   awscdk.Duration_Minutes(jsii.Number(1)),
	})
}

// newSource is the bare event source: the L2 one would widen the role.
func (r *relay) newSource(name, id string, q awssqs.Queue) {
	props := &awslambda.EventSourceMappingProps{
		Target:                  r.functions[name].Function,
		EventSourceArn:          q.QueueArn(),
		BatchSize:               jsii.Number(batch),
		ReportBatchItemFailures: jsii.Bool(true),
	}
	if n, ok := r.settings.maxConcurrency[name]; ok {
		props.MaxConcurrency = jsii.Number(n)
	}
	awslambda.NewEventSourceMapping(r.Stack, str(id), props)
}
