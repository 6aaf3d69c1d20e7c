package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"blindpost/shared/proof/cost"
)

// printCostTable prints a column for each bill.
func printCostTable(w io.Writer, c cost.Counts, p cost.Prices, bills []cost.Bill) error {
	var b strings.Builder
	fmt.Fprintf(&b, "What the relay costs a month on AWS, in US dollars: %s, prices of %s, without any free\ntier, taxes or discounts. Counted on %s in a run of all functions over a day in which each\nhousehold has\n", p.Region, p.Date, c.Date)
	for _, line := range c.Day {
		fmt.Fprintf(&b, "  - %s\n", line)
	}
	fmt.Fprint(&b, "and assuming that\n")
	for _, line := range c.Assumed {
		fmt.Fprintf(&b, "  - %s\n", line)
	}
	fmt.Fprintln(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, of func(cost.Bill) string) {
		fmt.Fprintf(t, "%-30s\t", name) // the writer aligns to the right
		for _, bill := range bills {
			fmt.Fprint(t, of(bill), "\t")
		}
		fmt.Fprintln(t)
	}
	lines := func(of func(cost.Bill) []cost.Line) {
		for i, l := range of(bills[0]) {
			row(l.Name, func(bill cost.Bill) string { return dollars(of(bill)[i].USD) })
		}
	}
	row("households", func(bill cost.Bill) string { return commas(float64(bill.Households)) })
	lines(func(bill cost.Bill) []cost.Line { return bill.Lines })
	row("in all", func(bill cost.Bill) string { return dollars(bill.Total) })
	row("each", func(bill cost.Bill) string { return dollars(bill.Each()) })
	row("", func(cost.Bill) string { return "" })
	row("optional:", func(cost.Bill) string { return "" })
	lines(func(bill cost.Bill) []cost.Line { return bill.Watching })
	row("CloudFront in front (edge)", func(bill cost.Bill) string { return dollars(cost.Sum(bill.Edge)) })
	if err := t.Flush(); err != nil {
		return fmt.Errorf("failed to print the bill: %w", err)
	}
	if _, err := io.WriteString(w, trimRight(b.String())); err != nil {
		return fmt.Errorf("failed to print the bill: %w", err)
	}
	return nil
}

// trimRight takes blanks off the ends of lines.
func trimRight(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// dollars prints an amount with as many digits as are useful.
func dollars(v float64) string {
	switch {
	case v >= 100:
		return commas(v)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
}
