package meter

import (
	"math"
	"testing"
	"time"

	"blindpost/shared/table"
)

func TestNumberSize(t *testing.T) {
	for n, want := range map[int64]int{
		0: 1, 1: 2, 9: 2, 10: 2, 42: 2, -42: 3, 100: 2, 123: 3, 1230: 3, 12345: 4, -1: 3, 1_000_000: 2,
		1_800_000_000: 2, 1_812_345_678: 6, math.MaxInt64: 11, math.MinInt64: 12,
	} {
		if got := numberSize(n); got != want {
			t.Errorf("%d counts %d bytes, want %d", n, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	k := table.Key{Partition: "pp", Sort: "sss"}
	for _, c := range []struct {
		name string
		it   table.Item
		want int
	}{
		{"key alone", table.Item{Key: k}, 4 + 5},
		{"expiry", table.Item{Key: k, Expires: time.Unix(1_812_345_678, 0)}, 4 + 5 + 3 + 6},
		{"values", table.Item{Key: k, Attrs: table.Attrs{"s": table.String("ж"), "b": table.Bytes(make([]byte, 10)), "n": table.Number(7), "e": table.String("")}},
			4 + 5 + 3 + 11 + 3 + 1},
		{"escaped name", table.Item{Key: k, Attrs: table.Attrs{"ttl": table.Number(0)}}, 4 + 5 + 5},
	} {
		if got := Size(c.it); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}
