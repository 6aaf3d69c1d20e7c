package cost

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestTiers(t *testing.T) {
	p := Price{Unit: "x", Tiers: []Tier{{UpTo: 10, USD: 3}, {UpTo: 30, USD: 2}, {USD: 1}}}
	for units, want := range map[float64]float64{0: 0, 1: 3, 10: 30, 11: 32, 30: 70, 100: 140} {
		if got := p.of(units); !near(got, want) {
			t.Errorf("%v units cost %v, want %v", units, got, want)
		}
	}
}

// day is a made-up day whose bill can be worked out by hand: a month has 365/12 days.
var day = Counts{
	Date: "2030-01-02",
	Idle: Use{
		Functions: map[string]Function{"sweeper": {Calls: 12, Milliseconds: 4000}},
		Table:     Table{ReadUnits: 24},
	},
	Household: Use{
		API:       API{Connects: 2, In: 100, Out: 140, Minutes: 1440, BytesOut: 1 << 20},
		Functions: map[string]Function{"message": {Calls: 100, Milliseconds: 8000}, "disconnect": {Calls: 2, Milliseconds: 80}},
		Queues:    map[string]Queue{"ingress": {Sends: 100, Receives: 90, Deletes: 90, Postpones: 2}, "jobs": {Sends: 3, Receives: 3, Deletes: 3}},
		Table:     Table{ReadUnits: 400, WriteUnits: 120, Bytes: 1 << 20},
		Push:      Push{Requests: 1, Publishes: 4},
		Logs:      Logs{Functions: 1 << 20, Access: 1 << 19},
	},
}

func TestBill(t *testing.T) {
	prices, err := ListPrices()
	if err != nil {
		t.Fatal(err)
	}
	const month = 365.0 / 12
	for _, n := range []float64{1, 1000} {
		b, err := NewBill(day, prices, int(n))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{
			"API Gateway, messages":         n * month * 240 * 1.00e-6,
			"API Gateway, connections":      n * month * 1440 * 0.25e-6,
			"Lambda, calls":                 month * (12 + n*102) * 0.20e-6,
			"Lambda, time":                  month * (4*0.25 + n*(8*0.25+0.08*0.125)) * 13.3334e-6,
			"DynamoDB, reads":               month * (24 + n*400) * 0.125e-6,
			"DynamoDB, writes":              n * month * 120 * 0.625e-6,
			"DynamoDB, storage":             n / 1024 * 0.25,
			"DynamoDB, recovery":            n / 1024 * 0.20,
			"SQS, polling of frames":        0.325,
			"SQS, polling of jobs":          0.26,
			"SQS, frames":                   n * month * 282 * 0.50e-6,
			"SQS, jobs":                     n * month * 9 * 0.40e-6,
			"SNS, requests":                 n * month * 5 * 0.50e-6,
			"SNS, pushes":                   n * month * 4 * 0.50e-6,
			"CloudWatch, logs of functions": n * month / 1024 * 0.50,
			"CloudWatch, access log":        n * month / 2048 * 0.50,
			"CloudWatch, kept logs":         n * 14 * 1.5 / 1024 * 0.03,
			"Data to the internet":          n * month * (1<<20 + 1000) / (1 << 30) * 0.09,
		}
		sum := 0.0
		for _, l := range b.Lines {
			if w, ok := want[l.Name]; !ok || !near(l.USD, w) {
				t.Errorf("%v households: %s is %v, want %v", n, l.Name, l.USD, w)
			}
			delete(want, l.Name)
			sum += l.USD
		}
		if len(want) > 0 {
			t.Errorf("there are no lines for %v", want)
		}
		if !near(b.Total, sum) || !near(b.Each(), sum/n) {
			t.Errorf("the total is %v, the lines are %v", b.Total, sum)
		}
		if w := Sum(b.Watching); !near(w, 4) { // ten metrics and a dashboard
			t.Errorf("watching costs %v", w)
		}
		edge := 0.40 + 8760*5e-6 + n*month*(2*1.1e-6-(0.09-0.085)*(1<<20+1000)/(1<<30))
		if got := Sum(b.Edge); !near(got, edge) {
			t.Errorf("the edge costs %v, want %v", got, edge)
		}
	}
}

// What is large falls into the cheaper tiers.
func TestManyAreCheaper(t *testing.T) {
	c, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	prices, err := ListPrices()
	if err != nil {
		t.Fatal(err)
	}
	last := math.Inf(1)
	for _, n := range []int{1, 10, 1000, 1_000_000} {
		b, err := NewBill(c, prices, n)
		if err != nil {
			t.Fatal(err)
		}
		if b.Each() >= last {
			t.Errorf("each of %d pays %v, of fewer %v", n, b.Each(), last)
		}
		last = b.Each()
	}
}

func TestBillsThatCannotBeMade(t *testing.T) {
	prices, err := ListPrices()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"no household": "0 households", "function": `no function "other"`, "queue": `no queue "other"`, "price": "lacks [sns_push]"} {
		c, p, n := day, prices, 1
		switch name {
		case "no household":
			n = 0
		case "function":
			c.Idle.Functions = map[string]Function{"other": {}}
		case "queue":
			c.Household.Queues = map[string]Queue{"other": {}}
		case "price":
			p.Prices = map[string]Price{}
			for k, v := range prices.Prices {
				if k != "sns_push" {
					p.Prices[k] = v
				}
			}
		}
		if _, err := NewBill(c, p, n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPriceListsThatMakeNoSense(t *testing.T) {
	for _, s := range []string{
		"", "{}", `{"date":"d","region":"r","prices":{"x":{}}}`, `{"date":"d","region":"r","other":1}`,
		`{"date":"d","region":"r","prices":{"x":{"unit":"u","tiers":[{"usd":1},{"usd":1}]}}}`,
		`{"date":"d","region":"r","prices":{"x":{"unit":"u","tiers":[{"up_to":5,"usd":1}]}}}`,
		`{"date":"d","region":"r","prices":{"x":{"unit":"u","tiers":[{"up_to":5,"usd":1},{"up_to":5,"usd":1},{"usd":1}]}}}`,
		`{"date":"d","region":"r","prices":{"x":{"unit":"u","tiers":[{"usd":0}]}}}`,
		`{"region":"r","prices":{"x":{"unit":"u","tiers":[{"usd":1}]}}}`,
	} {
		if _, err := parsePrices([]byte(s)); err == nil {
			t.Errorf("taken: %s", s)
		}
	}
}

func TestCountsThatMakeNoSense(t *testing.T) {
	for _, s := range []string{
		"", "[]", "{}", `{"date":"d","others":1}`, `{"date":"d","idle_day":{"table":{"read_units":-1}}}`, `{"date":"d","idle_day":{"functions":{"message":{"calls":-1}}}}`,
	} {
		if _, err := ParseCounts([]byte(s)); err == nil {
			t.Errorf("taken: %s", s)
		}
	}
}

func TestDrift(t *testing.T) {
	other := day
	other.Household = day.Household.Plus(Use{API: API{In: 20, Out: 5}, Push: Push{Publishes: 2}})
	other.Household.Functions["connect"] = Function{Calls: 20}
	got := Drift(day, other, 0.1, 3)
	if want := []string{"household_day.api.messages_in: 100 and 120", "household_day.functions.connect.calls: 0 and 20"}; !slices.Equal(got, want) {
		t.Errorf("drift is %q", got)
	}
	if d := Drift(day, day, 0, 0); len(d) > 0 {
		t.Errorf("drift is %q", d)
	}
	back := other.Household.Minus(day.Household)
	if back.API.In != 20 || back.Push.Publishes != 2 || back.Functions["connect"].Calls != 20 || back.Table.ReadUnits != 0 {
		t.Errorf("the difference is %+v", back)
	}
}
