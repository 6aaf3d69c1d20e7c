package cost

import (
	"fmt"
	"maps"
	"slices"
)

// Line is one line of a bill.
type Line struct {
	Name string `json:"name"`
	// Units a month, and what one is.
	Units float64 `json:"units"`
	Unit  string  `json:"unit"`
	USD   float64 `json:"usd"`
}

// Bill is what a month costs.
type Bill struct {
	Households int `json:"households"`
	// Lines are what the relay needs. Their sum is Total.
	Lines []Line  `json:"lines"`
	Total float64 `json:"usd"`
	// Watching are alarms and dashboard, which the relay runs without; they cost the
	// same for any number of households.
	Watching []Line `json:"watching"`
	// Edge is what CloudFront in front adds, which is off by default.
	Edge []Line `json:"edge"`
}

// Each is what Total is for each household.
func (b Bill) Each() float64 { return b.Total / float64(b.Households) }

// Sum adds lines up.
func Sum(lines []Line) float64 {
	sum := 0.0
	for _, l := range lines {
		sum += l.USD
	}
	return sum
}

// NewBill prices a month with so many households, at least one. It fails if the price
// list lacks a price, or the counts name a function or a queue that is not in the
// stack.
func NewBill(c Counts, p Prices, households int) (Bill, error) {
	if households < 1 {
		return Bill{}, fmt.Errorf("failed to make a bill: %d households", households)
	}
	for _, u := range []Use{c.Idle, c.Household} {
		for name := range u.Functions {
			if memoryMB[name] == 0 {
				return Bill{}, fmt.Errorf("failed to make a bill: there is no function %q", name)
			}
		}
		for name := range u.Queues {
			if name != "ingress" && name != "jobs" {
				return Bill{}, fmt.Errorf("failed to make a bill: there is no queue %q", name)
			}
		}
	}
	w := &writer{prices: p.Prices, counts: c, households: float64(households)}
	b := Bill{Households: households}
	b.Lines = w.relay()
	b.Total = Sum(b.Lines)
	b.Watching = []Line{
		w.line("CloudWatch alarms", "alarm", alarmMetrics),
		w.line("CloudWatch dashboard", "dashboard", dashboards),
	}
	b.Edge = w.edge()
	if len(w.missing) > 0 {
		return Bill{}, fmt.Errorf("failed to make a bill: the price list lacks %v", w.missing)
	}
	return b, nil
}

type writer struct {
	prices     map[string]Price
	counts     Counts
	households float64
	missing    []string
}

func (w *writer) line(name, price string, units float64) Line {
	p, ok := w.prices[price]
	if !ok {
		w.missing = append(w.missing, price)
	}
	return Line{Name: name, Units: units, Unit: p.Unit, USD: p.of(units)}
}

// month is what a number of a day is in a month, for all households.
func (w *writer) month(of func(Use) float64) float64 {
	return daysAMonth * w.day(of)
}

func (w *writer) day(of func(Use) float64) float64 {
	return of(w.counts.Idle) + w.households*of(w.counts.Household)
}

// queue is the traffic of a queue; polling is a line of its own.
func (w *writer) queue(name string) float64 {
	return w.month(func(u Use) float64 { return u.Queues[name].Requests() })
}

func (w *writer) relay() []Line {
	functions := func(of func(name string, f Function) float64) float64 {
		return w.month(func(u Use) float64 {
			sum := 0.0
			for _, name := range slices.Sorted(maps.Keys(u.Functions)) {
				sum += of(name, u.Functions[name])
			}
			return sum
		})
	}
	// What is stored is there all the month.
	stored := w.day(func(u Use) float64 { return u.Table.Bytes }) / gigabyte
	functionLogs := w.month(func(u Use) float64 { return u.Logs.Functions }) / gigabyte
	accessLogs := w.month(func(u Use) float64 { return u.Logs.Access }) / gigabyte
	return []Line{
		w.line("API Gateway, messages", "api_message", w.month(func(u Use) float64 { return u.API.In + u.API.Out })),
		w.line("API Gateway, connections", "api_minute", w.month(func(u Use) float64 { return u.API.Minutes })),
		w.line("Lambda, calls", "lambda_request", functions(func(_ string, f Function) float64 { return f.Calls })),
		w.line("Lambda, time", "lambda_gb_second", functions(func(name string, f Function) float64 {
			return f.Milliseconds / 1000 * memoryMB[name] / 1024
		})),
		w.line("DynamoDB, reads", "dynamo_read", w.month(func(u Use) float64 { return u.Table.ReadUnits })),
		w.line("DynamoDB, writes", "dynamo_write", w.month(func(u Use) float64 { return u.Table.WriteUnits })),
		w.line("DynamoDB, storage", "dynamo_storage", stored),
		w.line("DynamoDB, recovery", "dynamo_recovery", stored),
		w.line("SQS, polling of frames", "sqs_fifo", pollsAMonth),
		w.line("SQS, polling of jobs", "sqs_standard", pollsAMonth),
		w.line("SQS, frames", "sqs_fifo", w.queue("ingress")),
		w.line("SQS, jobs", "sqs_standard", w.queue("jobs")),
		w.line("SNS, requests", "sns_request", w.month(func(u Use) float64 { return u.Push.Requests + u.Push.Publishes })),
		w.line("SNS, pushes", "sns_push", w.month(func(u Use) float64 { return u.Push.Publishes })),
		w.line("CloudWatch, logs of functions", "log_lambda", functionLogs),
		w.line("CloudWatch, access log", "log_other", accessLogs),
		w.line("CloudWatch, kept logs", "log_storage", (functionLogs+accessLogs)/daysAMonth*logDays),
		w.line("Data to the internet", "transfer_out", w.month(bytesOut)/gigabyte),
	}
}

// edge is what CloudFront adds. What goes from AWS to CloudFront is free, so the bytes
// are paid there instead of at API Gateway.
func (w *writer) edge() []Line {
	connects := w.month(func(u Use) float64 { return u.API.Connects })
	bytes := w.month(bytesOut) / gigabyte
	saved := w.line("Data to the internet, not from API Gateway", "transfer_out", bytes)
	saved.USD = -saved.USD
	return []Line{
		w.line("CloudFront, upgrades", "cloudfront_request", connects),
		w.line("CloudFront, function", "cloudfront_function", connects),
		w.line("CloudFront, data to the internet", "cloudfront_out", bytes),
		saved,
		w.line("Secrets Manager, secret", "secret", 1),
		w.line("Secrets Manager, reads", "secret_request", secretReads),
	}
}

func bytesOut(u Use) float64 { return u.API.BytesOut + u.API.Connects*upgradeBytes }
