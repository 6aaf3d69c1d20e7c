//go:build cdk

package main

import (
	"strings"
	"testing"
)

func TestAlarms(t *testing.T) {
	tm := synth(t, "everything", everything).template
	want := map[string]map[string]string{
		"IngressDead": {"MetricName": "ApproximateNumberOfMessagesVisible", "Namespace": "AWS/SQS", "Dimensions.0.Value": "${IngressDeadLetters.QueueName}", "Threshold": "0"},
		"JobsDead":    {"MetricName": "ApproximateNumberOfMessagesVisible", "Namespace": "AWS/SQS", "Dimensions.0.Value": "${JobsDeadLetters.QueueName}", "Threshold": "0"},
		"IngressOld":  {"MetricName": "ApproximateAgeOfOldestMessage", "Namespace": "AWS/SQS", "Dimensions.0.Value": "${Ingress.QueueName}", "Threshold": "60"},
		"JobsOld":     {"MetricName": "ApproximateAgeOfOldestMessage", "Namespace": "AWS/SQS", "Dimensions.0.Value": "${Jobs.QueueName}", "Threshold": "2700"},
		"ApiErrors":   {"Threshold": "0", "MetricName": ""},
		"HttpErrors":  {"MetricName": "5xx", "Namespace": "AWS/ApiGateway", "Dimensions.0.Value": "${Http}", "Threshold": "0"},
		"BinaryDown":  {"MetricName": "HealthyHostCount", "Namespace": "AWS/ApplicationELB", "Threshold": "1"},
	}
	for _, f := range functionNames {
		want[title(f)+"Errors"] = map[string]string{"MetricName": "Errors", "Namespace": "AWS/Lambda", "Dimensions.0.Value": "${" + title(f) + "}", "Threshold": "0"}
		want[title(f)+"Throttles"] = map[string]string{"MetricName": "Throttles", "Namespace": "AWS/Lambda", "Dimensions.0.Value": "${" + title(f) + "}", "Threshold": "0"}
	}
	for id, values := range want {
		t.Run(id, func(t *testing.T) {
			a := tm.get(t, id, "AWS::CloudWatch::Alarm")
			values["TreatMissingData"] = "notBreaching"
			values["ComparisonOperator"] = "GreaterThanThreshold"
			if id == "BinaryDown" {
				values["ComparisonOperator"], values["TreatMissingData"] = "LessThanThreshold", "breaching"
			}
			values["AlarmActions"] = `[{"Ref":"` + longID(t, tm, "AlarmTopic") + `"}]`
			values["OKActions"] = values["AlarmActions"]
			a.want(t, values)
		})
	}
	if n := len(tm.ofType("AWS::CloudWatch::Alarm")); n != len(want) {
		t.Errorf("there are %d alarms, want %d", n, len(want))
	}
	api := tm.get(t, "ApiErrors", "AWS::CloudWatch::Alarm").at("Metrics")
	for _, m := range []string{"IntegrationError", "ConnectCount", "ExecutionError"} {
		if !strings.Contains(api, `"MetricName":"`+m+`"`) {
			t.Errorf("the alarm on 5xx does not look at %s", m)
		}
	}
	if strings.Contains(api, "SEARCH") || strings.Contains(api, "SELECT") {
		t.Error("an expression that searches costs by what it finds")
	}
}

func longID(t *testing.T, tm *template, id string) string {
	t.Helper()
	for _, m := range strings.Split(tm.text, `"`) {
		if m != id && shortID(m) == id {
			return m
		}
	}
	t.Fatalf("there is no %s", id)
	return ""
}

func TestWhoIsTold(t *testing.T) {
	full := synth(t, "everything", everything).template
	subscriptions := full.ofType("AWS::SNS::Subscription")
	if len(subscriptions) != 1 {
		t.Fatalf("subscriptions are %v", subscriptions)
	}
	for _, s := range subscriptions {
		s.want(t, map[string]string{"Protocol": "email", "Endpoint": "someone@example.org", "TopicArn": "${AlarmTopic}"})
	}
	given := synth(t, "domain", fronts["domain"]).template
	given.get(t, "JobsDead", "AWS::CloudWatch::Alarm").want(t, map[string]string{"AlarmActions.0": "arn:aws:sns:eu-central-1:123456789012:alarms"})
	plain := synth(t, "plain", nil).template
	plain.get(t, "JobsDead", "AWS::CloudWatch::Alarm").want(t, map[string]string{"AlarmActions": ""})
	for name, tm := range map[string]*template{"domain": given, "plain": plain} {
		if n := len(tm.ofType("AWS::SNS::Topic")); n != 0 {
			t.Errorf("%s: %d topics were made without a subscriber", name, n)
		}
	}
}

// alarmsOf counts the alarms, and the metrics that they look at.
func alarmsOf(tm *template) (alarms, metrics int) {
	for _, a := range tm.ofType("AWS::CloudWatch::Alarm") {
		alarms++
		if a.at("MetricName") != "" {
			metrics++
		}
		for _, m := range list(a.value("Metrics")) {
			if m != nil && m.(map[string]any)["MetricStat"] != nil {
				metrics++
			}
		}
	}
	return alarms, metrics
}

// CloudWatch charges by metric, and the documentation counts on these numbers.
func TestAlarmsAndDashboardByChoice(t *testing.T) {
	for name, want := range map[string][3]int{"plain": {8, 10, 1}, "edge": {8, 10, 1}, "small": {0, 0, 0}, "domain": {8, 10, 0}, "no log": {14, 16, 1}, "binary": {9, 11, 1}, "everything": {15, 17, 1}} {
		tm := synth(t, name, fronts[name]).template
		alarms, metrics := alarmsOf(tm)
		got := [3]int{alarms, metrics, len(tm.ofType("AWS::CloudWatch::Dashboard"))}
		if got != want {
			t.Errorf("%s has %d alarms on %d metrics and %d dashboards, want %v", name, got[0], got[1], got[2], want)
		}
	}
	few := synth(t, "plain", nil).template
	for _, id := range []string{"ConnectErrors", "SweeperErrors", "ConnectThrottles", "IngressDead", "JobsDead", "IngressOld", "JobsOld", "ApiErrors"} {
		few.get(t, id, "AWS::CloudWatch::Alarm")
	}
}

func TestDashboardIsSmallEnoughToBeFree(t *testing.T) {
	body := synth(t, "plain", nil).template.get(t, "Dashboard", "AWS::CloudWatch::Dashboard").at("DashboardBody")
	for _, m := range []string{"ConnectCount", "IntegrationError", "Invocations", "Throttles", "ApproximateAgeOfOldestMessage", "ConsumedWriteCapacityUnits"} {
		if !strings.Contains(body, m) {
			t.Errorf("the dashboard does not show %s", m)
		}
	}
	if n := strings.Count(body, `["AWS/`); n == 0 || n > 50 {
		t.Errorf("the dashboard has %d metrics; up to 50 it is free", n)
	}
}
