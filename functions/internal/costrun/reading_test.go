package costrun

import (
	"context"
	"maps"
	"sync"

	"blindpost/shared/proof/apigwtest"
	"blindpost/shared/proof/cost"
	"blindpost/shared/proof/meter"
	"blindpost/shared/table"
)

// reading is what all meters show at one time.
type reading struct {
	use        cost.Use
	traffic    apigwtest.Traffic
	usage      meter.Usage
	disconnect int
}

func (s *stage) read() reading {
	r := reading{traffic: s.api.Traffic(), usage: s.table.Usage()}
	s.queues.mu.Lock()
	r.use.Queues = maps.Clone(s.queues.use)
	s.queues.mu.Unlock()
	s.provider.mu.Lock()
	r.use.Push = s.provider.use
	s.provider.mu.Unlock()
	s.log.mu.Lock()
	r.use.Logs.Functions = float64(s.log.bytes)
	s.log.mu.Unlock()
	s.mu.Lock()
	r.use.Functions = maps.Clone(s.functions)
	r.use.Logs.Functions += float64(s.logged)
	r.disconnect = s.disconnect
	s.mu.Unlock()
	r.use.Table.Bytes = s.bytes.total()
	return r
}

// since is what was used after an earlier reading.
func (r reading) since(earlier reading) cost.Use {
	u := r.use.Minus(earlier.use)
	t := r.traffic.Since(earlier.traffic)
	u.API = cost.API{
		Connects: float64(t.Connects), In: float64(t.In), Out: float64(t.Out),
		Minutes: t.Open.Minutes(), BytesOut: float64(t.BytesOut),
	}
	sum := r.usage.Since(earlier.usage).Total()
	u.Table = cost.Table{ReadUnits: float64(sum.Read), WriteUnits: float64(sum.Write), Bytes: r.use.Table.Bytes}
	lines := t.Connects + t.FramesIn + int64(r.disconnect-earlier.disconnect)
	u.Logs.Access = float64(lines * accessLog)
	return u
}

// sizes knows how much a table holds. It counts what has expired, as DynamoDB does
// until it has removed it.
type sizes struct {
	table.Table
	mu    sync.Mutex
	items map[table.Key]int
}

func newSizes(under table.Table) *sizes { return &sizes{Table: under, items: map[table.Key]int{}} }

func (s *sizes) note(ctx context.Context, keys ...table.Key) {
	for _, k := range keys {
		it, err := s.Table.Get(context.WithoutCancel(ctx), k)
		s.mu.Lock()
		if err != nil {
			delete(s.items, k)
		} else {
			s.items[k] = meter.Size(it) + itemBytes
		}
		s.mu.Unlock()
	}
}

func (s *sizes) total() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := 0
	for _, n := range s.items {
		sum += n
	}
	return float64(sum)
}

func (s *sizes) Write(ctx context.Context, op table.Op) (table.Item, error) {
	old, err := s.Table.Write(ctx, op)
	s.note(ctx, op.Key)
	return old, err
}

func (s *sizes) Transact(ctx context.Context, ops []table.Op) error {
	err := s.Table.Transact(ctx, ops)
	for _, op := range ops {
		s.note(ctx, op.Key)
	}
	return err
}
