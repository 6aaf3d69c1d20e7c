// Package cost tells what the relay costs a month on AWS. It multiplies what a run has
// counted (counts.json, made by functions/internal/costrun) by the price list
// (prices.json) and by how the stack is built (stack.go, which a test compares with
// infra/).
//
// What it promises: nothing is left out that AWS charges for in the stack as it is
// deployed without settings, no free tier is taken off, and what is there once (the
// polling of the queues, the clock, alarms, the dashboard) is told apart from what
// each household adds. Taxes and support plans are not in it.
package cost
