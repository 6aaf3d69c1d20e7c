package cost

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Counts are what a run has counted.
type Counts struct {
	// Date is the day of the run.
	Date string `json:"date"`
	// Day says in words what the household does, Assumed what the run takes for
	// granted, each with its number.
	Day     []string `json:"day"`
	Assumed []string `json:"assumed"`
	// Idle is what a day costs without any household, Household what each one adds.
	Idle      Use `json:"idle_day"`
	Household Use `json:"household_day"`
}

// Use is what the stack uses in a day, in the units that AWS charges for.
type Use struct {
	API       API                 `json:"api"`
	Functions map[string]Function `json:"functions"`
	// Queues are "ingress" and "jobs".
	Queues map[string]Queue `json:"queues"`
	Table  Table            `json:"table"`
	Push   Push             `json:"push"`
	Logs   Logs             `json:"logs"`
}

// API is the use of API Gateway.
type API struct {
	Connects float64 `json:"connects"`
	// Messages of 32 KB from and to peers.
	In  float64 `json:"messages_in"`
	Out float64 `json:"messages_out"`
	// Minutes that connections were open.
	Minutes  float64 `json:"connection_minutes"`
	BytesOut float64 `json:"bytes_out"`
}

// Function is the use of one Lambda function.
type Function struct {
	Calls float64 `json:"calls"`
	// Cold are the calls that started a process.
	Cold float64 `json:"cold_starts"`
	// Milliseconds is how long all calls together took, cold starts included.
	Milliseconds float64 `json:"milliseconds"`
}

// Queue is the use of one SQS queue, in requests of 64 KB. The polling of an empty
// queue is not in it.
type Queue struct {
	Sends    float64 `json:"sends"`
	Receives float64 `json:"receives"`
	Deletes  float64 `json:"deletes"`
	// Postpones are changes of visibility.
	Postpones float64 `json:"postpones"`
}

// Requests is the sum.
func (q Queue) Requests() float64 { return q.Sends + q.Receives + q.Deletes + q.Postpones }

// Table is the use of DynamoDB.
type Table struct {
	ReadUnits  float64 `json:"read_units"`
	WriteUnits float64 `json:"write_units"`
	// Bytes that are stored at the end of the day.
	Bytes float64 `json:"stored_bytes"`
}

// Push is the use of SNS.
type Push struct {
	// Requests are all but publishes.
	Requests  float64 `json:"requests"`
	Publishes float64 `json:"publishes"`
}

// Logs is what goes to CloudWatch, in bytes.
type Logs struct {
	Functions float64 `json:"functions_bytes"`
	Access    float64 `json:"access_bytes"`
}

//go:embed counts.json
var embedded []byte

// Embedded are the counts of the run that was kept last.
func Embedded() (Counts, error) { return ParseCounts(embedded) }

// ParseCounts reads counts as JSON.
func ParseCounts(data []byte) (Counts, error) {
	var c Counts
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Counts{}, fmt.Errorf("failed to read counts: %w", err)
	}
	if c.Date == "" {
		return Counts{}, errors.New("failed to read counts: they have no date")
	}
	for name, v := range c.Flat() {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return Counts{}, fmt.Errorf("failed to read counts: %s is %v", name, v)
		}
	}
	return c, nil
}

// Flat are all numbers by their path, such as "household_day.api.messages_in".
func (c Counts) Flat() map[string]float64 {
	out := make(map[string]float64)
	for name, u := range map[string]Use{"idle_day": c.Idle, "household_day": c.Household} {
		for path, v := range u.flat() {
			out[name+"."+path] = v
		}
	}
	return out
}

func (u Use) flat() map[string]float64 {
	out := map[string]float64{
		"api.connects": u.API.Connects, "api.messages_in": u.API.In, "api.messages_out": u.API.Out,
		"api.connection_minutes": u.API.Minutes, "api.bytes_out": u.API.BytesOut,
		"table.read_units": u.Table.ReadUnits, "table.write_units": u.Table.WriteUnits, "table.stored_bytes": u.Table.Bytes,
		"push.requests": u.Push.Requests, "push.publishes": u.Push.Publishes,
		"logs.functions_bytes": u.Logs.Functions, "logs.access_bytes": u.Logs.Access,
	}
	for name, f := range u.Functions {
		p := "functions." + name
		out[p+".calls"], out[p+".cold_starts"], out[p+".milliseconds"] = f.Calls, f.Cold, f.Milliseconds
	}
	for name, q := range u.Queues {
		p := "queues." + name
		out[p+".sends"], out[p+".receives"], out[p+".deletes"], out[p+".postpones"] = q.Sends, q.Receives, q.Deletes, q.Postpones
	}
	return out
}

// Minus is what u has more than v, nothing where it has less.
func (u Use) Minus(v Use) Use {
	return u.with(v, func(a, b float64) float64 { return max(0, a-b) })
}

// Plus is both together.
func (u Use) Plus(v Use) Use {
	return u.with(v, func(a, b float64) float64 { return a + b })
}

func (u Use) with(v Use, f func(a, b float64) float64) Use {
	out := Use{
		API: API{
			f(u.API.Connects, v.API.Connects), f(u.API.In, v.API.In), f(u.API.Out, v.API.Out),
			f(u.API.Minutes, v.API.Minutes), f(u.API.BytesOut, v.API.BytesOut),
		},
		Functions: map[string]Function{}, Queues: map[string]Queue{},
		Table: Table{
			f(u.Table.ReadUnits, v.Table.ReadUnits), f(u.Table.WriteUnits, v.Table.WriteUnits), f(u.Table.Bytes, v.Table.Bytes),
		},
		Push: Push{f(u.Push.Requests, v.Push.Requests), f(u.Push.Publishes, v.Push.Publishes)},
		Logs: Logs{f(u.Logs.Functions, v.Logs.Functions), f(u.Logs.Access, v.Logs.Access)},
	}
	for _, names := range []map[string]Function{u.Functions, v.Functions} {
		for name := range names {
			g, h := u.Functions[name], v.Functions[name]
			out.Functions[name] = Function{f(g.Calls, h.Calls), f(g.Cold, h.Cold), f(g.Milliseconds, h.Milliseconds)}
		}
	}
	for _, names := range []map[string]Queue{u.Queues, v.Queues} {
		for name := range names {
			g, h := u.Queues[name], v.Queues[name]
			out.Queues[name] = Queue{
				f(g.Sends, h.Sends), f(g.Receives, h.Receives), f(g.Deletes, h.Deletes), f(g.Postpones, h.Postpones),
			}
		}
	}
	return out
}

// Drift lists the numbers of two counts that differ by more than a part of the
// larger one, and by more than slack, which is for the small ones.
func Drift(a, b Counts, part, slack float64) []string {
	x, y := a.Flat(), b.Flat()
	names := slices.Collect(maps.Keys(x))
	for name := range y {
		if _, ok := x[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []string
	for _, name := range names {
		d := math.Abs(x[name] - y[name])
		if d > slack && d > part*max(x[name], y[name]) {
			out = append(out, fmt.Sprintf("%s: %.0f and %.0f", name, x[name], y[name]))
		}
	}
	return out
}
