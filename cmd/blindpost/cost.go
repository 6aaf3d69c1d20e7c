package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"blindpost/shared/proof/cost"
)

// costSettings are the flags of `blindpost cost`.
type costSettings struct {
	json       bool
	counts     string // file, "" for the counts in this binary
	households []int
}

const costAbout = `Prints what the relay costs a month on AWS, from what a run has counted and the
price list. It needs neither a network nor an AWS account.`

// maxHouseholds bounds the numbers for which a bill is computed.
const maxHouseholds = 1_000_000_000

// parseCost reads the flags. For --help it prints them to out and returns
// flag.ErrHelp.
func parseCost(args []string, out io.Writer) (costSettings, error) {
	s := costSettings{households: []int{1, 1000, 1_000_000}}
	var list listValue
	f := newFlags("cost")
	f.BoolVar(&s.json, "json", false, "print one JSON object instead of a table")
	f.StringVar(&s.counts, "counts", "", "`file` with the counts of a run, as `make cost` makes it (default: the counts that came with this binary)")
	f.Var(&list, "households", "`numbers` of households, separated by commas (default 1,1000,1000000)")
	if err := parseFlags(f, args, out, costAbout); err != nil {
		return s, err
	}
	if len(list) > 0 {
		s.households = nil
	}
	for _, text := range list {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > maxHouseholds {
			return s, fmt.Errorf("--households: %q must be a number from 1 to %d", text, maxHouseholds)
		}
		s.households = append(s.households, n)
	}
	return s, nil
}

// runCost prints a bill.
func runCost(_ context.Context, e env, args []string) int {
	s, err := parseCost(args, e.stdout)
	if err != nil {
		return noFlags(e, "cost", err)
	}
	if err := printCost(e.stdout, s); err != nil {
		fmt.Fprintf(e.stderr, "blindpost cost: %v\n", err)
		return 1
	}
	return 0
}

func printCost(w io.Writer, s costSettings) error {
	counts, err := cost.Embedded()
	if s.counts != "" {
		var data []byte
		if data, err = os.ReadFile(s.counts); err == nil {
			counts, err = cost.ParseCounts(data)
		}
	}
	if err != nil {
		return err
	}
	prices, err := cost.ListPrices()
	if err != nil {
		return err
	}
	var bills []cost.Bill
	for _, n := range s.households {
		b, err := cost.NewBill(counts, prices, n)
		if err != nil {
			return err
		}
		bills = append(bills, b)
	}
	if s.json {
		return printCostJSON(w, counts, prices, bills)
	}
	return printCostTable(w, counts, prices, bills)
}

// costObject is what --json prints.
type costObject struct {
	// Monthly are the totals by number of households, without Watching.
	Monthly map[string]float64 `json:"monthly_usd"`
	// Watching is what alarms and dashboard cost, for any number of households.
	Watching float64     `json:"alarms_and_dashboard_usd"`
	Counted  string      `json:"counts_date"`
	Prices   string      `json:"prices_date"`
	Region   string      `json:"region"`
	Bills    []cost.Bill `json:"bills"`
}

func printCostJSON(w io.Writer, c cost.Counts, p cost.Prices, bills []cost.Bill) error {
	o := costObject{Monthly: map[string]float64{}, Counted: c.Date, Prices: p.Date, Region: p.Region, Bills: bills}
	for _, b := range bills {
		o.Monthly[strconv.Itoa(b.Households)] = b.Total
		o.Watching = cost.Sum(b.Watching)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(o); err != nil {
		return fmt.Errorf("failed to print the bill: %w", err)
	}
	return nil
}
