//go:build cdk

package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// newDashboard makes a dashboard of fewer than 50 metrics: up to that number three
// dashboards are free.
func (r *relay) newDashboard() {
	var calls, errs, throttles, times []awscloudwatch.IMetric
	for _, name := range functionNames {
		f := r.functions[name]
		label := func(statistic string) *awscloudwatch.MetricOptions {
			o := &awscloudwatch.MetricOptions{Label: str(name)}
			if statistic != "" {
				o.Statistic = str(statistic)
			}
			return o
		}
		calls = append(calls, f.MetricInvocations(label("")))
		errs = append(errs, f.MetricErrors(label("")))
		throttles = append(throttles, f.MetricThrottles(label("")))
		times = append(times, f.MetricDuration(label("p95")))
	}
	q := r.queues
	apiErrors := []awscloudwatch.IMetric{r.apiMetric("ClientError", "Sum"), r.apiMetric("IntegrationError", "Sum"), r.apiMetric("ExecutionError", "Sum")}
	if r.http != nil {
		sum := &awscloudwatch.MetricOptions{Statistic: str("Sum")}
		apiErrors = append(apiErrors, r.http.MetricClientError(sum), r.http.MetricServerError(sum))
	}
	table := func(name string) awscloudwatch.IMetric {
		return r.table.Metric(str(name), &awscloudwatch.MetricOptions{Statistic: str("Sum")})
	}
	awscloudwatch.NewDashboard(r.Stack, str("Dashboard"), &awscloudwatch.DashboardProps{
		Widgets: &[]*[]awscloudwatch.IWidget{
			{
				graph("Connections and frames", r.apiMetric("ConnectCount", "Sum"), r.apiMetric("MessageCount", "Sum")),
				graph("API errors", apiErrors...),
				graph("Latency behind the API", r.apiMetric("IntegrationLatency", "p95")),
			},
			{graph("Calls", calls...), graph("Errors", errs...), graph("Held back", throttles...), graph("Time, p95", times...)},
			{
				graph("Oldest message", age(q.ingress), age(q.jobs)),
				graph("Waiting", visible(q.ingress), visible(q.jobs)),
				graph("Dead letters", visible(q.ingressDead), visible(q.jobsDead)),
				graph("Table units", table("ConsumedReadCapacityUnits"), table("ConsumedWriteCapacityUnits")),
			},
		},
	})
}

func graph(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: str(title), Left: &metrics, Width: jsii.Number(6), Height: jsii.Number(6),
	})
}
