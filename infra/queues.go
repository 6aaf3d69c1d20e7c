//go:build cdk

package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// How often a message is tried before it goes to the dead letters.
const (
	ingressAttempts = 5
	jobsAttempts    = 8
)

// Lambda wants the visibility of a queue to be well above the timeout of the
// function that reads it; with less, a message could be handled twice at the same time.
const (
	ingressVisibility = 60
	jobsVisibility    = 150
)

type queues struct {
	// ingress carries all that happens to a connection, one connection after another
	// within its group, and the jobs that belong in that order.
	ingress, ingressDead awssqs.Queue
	// jobs carries what may happen in any order, and what happens later.
	jobs, jobsDead awssqs.Queue
}

// newQueues makes two queues, which Lambda polls, and their dead letters, which it does
// not: each polled queue costs some 650,000 requests a month, idle or not.
func newQueues(stack awscdk.Stack) *queues {
	var q queues
	q.ingressDead = newQueue(stack, "IngressDeadLetters", &awssqs.QueueProps{
		Fifo:            jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(4)),
	})
	q.ingress = newQueue(stack, "Ingress", &awssqs.QueueProps{
		Fifo:                      jsii.Bool(true),
		ContentBasedDeduplication: jsii.Bool(false),
		// Together: no limit for the queue as a whole, only one for each connection.
		DeduplicationScope:  awssqs.DeduplicationScope_MESSAGE_GROUP,
		FifoThroughputLimit: awssqs.FifoThroughputLimit_PER_MESSAGE_GROUP_ID,
		VisibilityTimeout:   awscdk.Duration_Seconds(jsii.Number(ingressVisibility)),
		RetentionPeriod:     awscdk.Duration_Days(jsii.Number(1)),
		DeadLetterQueue:     &awssqs.DeadLetterQueue{Queue: q.ingressDead, MaxReceiveCount: jsii.Number(ingressAttempts)},
	})
	// In a standard queue a dead letter keeps its age, so this one has to keep longer
	// than the queue before it.
	q.jobsDead = newQueue(stack, "JobsDeadLetters", &awssqs.QueueProps{
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
	})
	q.jobs = newQueue(stack, "Jobs", &awssqs.QueueProps{
		VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(jobsVisibility)),
		RetentionPeriod:   awscdk.Duration_Days(jsii.Number(4)),
		DeadLetterQueue:   &awssqs.DeadLetterQueue{Queue: q.jobsDead, MaxReceiveCount: jsii.Number(jobsAttempts)},
	})
	return &q
}

// newQueue encrypts with the key that SQS owns (free), and refuses plain HTTP.
func newQueue(stack awscdk.Stack, id string, p *awssqs.QueueProps) awssqs.Queue {
	p.Encryption = awssqs.QueueEncryption_SQS_MANAGED
	p.EnforceSSL = jsii.Bool(true)
	return awssqs.NewQueue(stack, str(id), p)
}
