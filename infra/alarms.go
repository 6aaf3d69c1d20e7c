//go:build cdk

package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// Ages in seconds at which a message should long have been handled. A job may be
// sent with a delay of 15 minutes and is tried for 20.
const (
	ingressAge = 60
	jobsAge    = 45 * 60
)

// The alarms of few look at ten metrics: CloudWatch charges by that number, and ten
// are free in an account. What they leave out shows in them too, but less
// precisely: frames and jobs that fail or are throttled get old and go to the dead
// letters, the sweeper finds a connection whose $disconnect is lost, and requests that
// fail are errors of functions/connect.
var onlyWithAll = map[string]bool{
	"DisconnectErrors": true,
	"MessageErrors":    true, "MessageThrottles": true, "DisconnectThrottles": true, "SweeperThrottles": true, "HttpErrors": true,
}

// newAlarms makes an alarm for each fault that an operator has to look at.
func (r *relay) newAlarms() {
	topic := r.alarmTopic()
	alarm := func(id string, props *awscloudwatch.AlarmProps) {
		a := awscloudwatch.NewAlarm(r.Stack, str(id), props)
		if topic != nil {
			a.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
			a.AddOkAction(awscloudwatchactions.NewSnsAction(topic))
		}
	}
	add := func(id, description string, m awscloudwatch.IMetric, above float64) {
		if r.settings.alarms != allAlarms && onlyWithAll[id] {
			return
		}
		alarm(id, &awscloudwatch.AlarmProps{
			AlarmDescription:   str("Blindpost: " + description),
			Metric:             m,
			Threshold:          jsii.Number(above),
			ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD,
			EvaluationPeriods:  jsii.Number(1),
			// An idle relay has no metrics, which is no fault.
			TreatMissingData: awscloudwatch.TreatMissingData_NOT_BREACHING,
		})
	}
	for _, name := range functionNames {
		id := strings.ToUpper(name[:1]) + name[1:]
		f := r.functions[name]
		add(id+"Errors", "functions/"+name+" failed; see its log", f.MetricErrors(nil), 0)
		add(id+"Throttles", "functions/"+name+" was held back: raise its reserved concurrency, or the account's", f.MetricThrottles(nil), 0)
	}
	add("IngressDead", "frames or disconnects could not be handled", visible(r.queues.ingressDead), 0)
	add("JobsDead", "jobs could not be done", visible(r.queues.jobsDead), 0)
	add("IngressOld", "frames wait for functions/message", age(r.queues.ingress), ingressAge)
	add("JobsOld", "jobs wait for functions/sweeper", age(r.queues.jobs), jobsAge)
	// A client that functions/connect refuses counts as an error of an integration, and
	// as a connect. Any more of them are frames that the queue has refused.
	add("ApiErrors", "API Gateway could not reach what is behind it, or a queue or function refused it",
		awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
			Expression: str("FILL(execution, 0) + IF(FILL(integration, 0) > FILL(connects, 0), FILL(integration, 0) - FILL(connects, 0), 0)"),
			Label:      str("errors"),
			Period:     fiveMinutes(),
			UsingMetrics: &map[string]awscloudwatch.IMetric{
				"integration": r.apiMetric("IntegrationError", "Sum"),
				"connects":    r.apiMetric("ConnectCount", "Sum"),
				"execution":   r.apiMetric("ExecutionError", "Sum"),
			},
		}), 0)
	if r.http != nil {
		add("HttpErrors", "an HTTP endpoint answered 5xx", r.http.MetricServerError(&awscloudwatch.MetricOptions{Statistic: str("Sum"), Period: fiveMinutes()}), 0)
	}
	if r.binary != nil {
		alarm("BinaryDown", &awscloudwatch.AlarmProps{
			AlarmDescription:   str("Blindpost: the binary front does not answer"),
			Metric:             r.binary.clients.Metrics().HealthyHostCount(&awscloudwatch.MetricOptions{Statistic: str("Minimum")}),
			Threshold:          jsii.Number(1),
			ComparisonOperator: awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD,
			EvaluationPeriods:  jsii.Number(2), // a deployment takes some minutes
			TreatMissingData:   awscloudwatch.TreatMissingData_BREACHING,
		})
	}
}

// alarmTopic is nil without an address or a topic; the console shows the alarms anyway.
func (r *relay) alarmTopic() awssns.ITopic {
	switch s := r.settings; {
	case s.alarmTopicARN != "":
		return awssns.Topic_FromTopicArn(r.Stack, str("AlarmTopic"), str(s.alarmTopicARN))
	case s.alarmEmail != "":
		t := awssns.NewTopic(r.Stack, str("AlarmTopic"), &awssns.TopicProps{EnforceSSL: jsii.Bool(true)})
		// A policy of its own replaces the default one, which lets CloudWatch publish.
		t.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(str("cloudwatch.amazonaws.com"), nil)},
			Actions:    jsii.Strings("sns:Publish"),
			Resources:  &[]*string{t.TopicArn()},
			Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": *r.Account()}},
		}))
		t.AddSubscription(awssnssubscriptions.NewEmailSubscription(str(s.alarmEmail), nil))
		return t
	default:
		return nil
	}
}

func fiveMinutes() awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(5)) }

func visible(q awssqs.Queue) awscloudwatch.IMetric {
	return q.MetricApproximateNumberOfMessagesVisible(&awscloudwatch.MetricOptions{Statistic: str("Maximum")})
}

func age(q awssqs.Queue) awscloudwatch.IMetric {
	return q.MetricApproximateAgeOfOldestMessage(&awscloudwatch.MetricOptions{Statistic: str("Maximum")})
}

// apiMetric is one of the metrics that API Gateway has for WebSocket APIs.
func (r *relay) apiMetric(name, statistic string) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace:     str("AWS/ApiGateway"),
		MetricName:    str(name),
		DimensionsMap: &map[string]*string{"ApiId": r.api.ApiId(), "Stage": str(stageName)},
		Statistic:     str(statistic),
		Period:        fiveMinutes(),
	})
}
