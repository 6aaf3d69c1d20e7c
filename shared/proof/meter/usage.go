package meter

import "blindpost/shared/table"

// Kind is a kind of operation.
type Kind uint8

// The kinds. A transaction of one operation counts as what it is to table/dynamo:
// a Put, Update or Delete, or for a Check a Get.
const (
	Get Kind = iota
	Query
	Put
	Update
	Delete
	Transact
	numKinds
)

// Kinds are all kinds, in order.
func Kinds() []Kind { return []Kind{Get, Query, Put, Update, Delete, Transact} }

func (k Kind) String() string {
	return [...]string{"get", "query", "put", "update", "delete", "transact", "unknown"}[min(k, numKinds)]
}

func kindOf(a table.Action) Kind {
	switch a {
	case table.Put:
		return Put
	case table.Update:
		return Update
	case table.Delete:
		return Delete
	default:
		return Get
	}
}

// Units are request units of DynamoDB.
type Units struct {
	Read  int64 // strongly consistent, 4 KB each
	Write int64 // 1 KB each
}

// Plus returns the sum.
func (u Units) Plus(v Units) Units { return Units{u.Read + v.Read, u.Write + v.Write} }

// Cost returns what the units cost, in the currency of the price.
func (u Units) Cost(p Price) float64 {
	return (float64(u.Read)*p.Read + float64(u.Write)*p.Write) / 1e6
}

// ReadUnits is what it takes to read so many bytes.
func ReadUnits(size int) int64 { return max(1, int64(size+4<<10-1)/(4<<10)) }

// WriteUnits is what it takes to write so many bytes.
func WriteUnits(size int) int64 { return max(1, int64(size+1<<10-1)/(1<<10)) }

// Price is the price of a million units.
type Price struct {
	Read, Write float64
}

// OnDemand is the price of capacity on demand in most regions, in US dollars.
var OnDemand = Price{Read: 0.125, Write: 0.625}

// Count is what one kind of operation has used.
type Count struct {
	Calls   int64 // all, also those that failed
	Refused int64 // those that a condition refused, which cost as well
	Units
}

// Usage is what has been used, by kind.
type Usage [numKinds]Count

// Total returns the sum over all kinds.
func (u Usage) Total() Count {
	var sum Count
	for _, c := range u {
		sum = sum.add(c, 1)
	}
	return sum
}

// Since returns what has been used since an earlier Usage.
func (u Usage) Since(earlier Usage) Usage {
	for k := range u {
		u[k] = u[k].add(earlier[k], -1)
	}
	return u
}

func (c Count) add(d Count, sign int64) Count {
	return Count{
		Calls:   c.Calls + sign*d.Calls,
		Refused: c.Refused + sign*d.Refused,
		Units:   Units{c.Read + sign*d.Read, c.Write + sign*d.Write},
	}
}
