package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBucketsAreSeamless(t *testing.T) {
	if got := bucketOf(math.MaxInt64); got != histogramBuckets-1 {
		t.Errorf("the longest duration is in bucket %d, want the last, %d", got, histogramBuckets-1)
	}
	if got := bucketOf(-time.Second); got != 0 {
		t.Errorf("a negative duration is in bucket %d, want 0", got)
	}
	begin := time.Duration(0)
	for i := range histogramBuckets {
		end := bucketEnd(i)
		if bucketOf(begin) != i || bucketOf(end-1) != i {
			t.Fatalf("bucket %d: %v and %v are in %d and %d", i, begin, end-1, bucketOf(begin), bucketOf(end-1))
		}
		if width := end - begin; width > 1024 && float64(width) > float64(begin)/32 {
			t.Fatalf("bucket %d from %v to %v is too wide", i, begin, end)
		}
		begin = end
	}
	if begin < time.Minute {
		t.Errorf("the buckets end at %v, want a minute at least", begin)
	}
}

// The quantiles are those of the sorted values, but for the width of a bucket.
func TestQuantilesAreThoseOfTheValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 99, 100, 101, 5000} {
		var h, half histogram
		values := make([]time.Duration, n)
		for i := range values {
			values[i] = time.Duration(math.Exp(r.Float64()*18)) * 100 // 100 ns to 6 s
			if i%2 == 0 {
				h.add(values[i])
			} else {
				half.add(values[i])
			}
		}
		h.merge(&half)
		slices.Sort(values)
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
			rank := max(int(math.Ceil(q*float64(n))), 1)
			exact, got := values[rank-1], h.quantile(q)
			if got < exact || float64(got-exact) > max(1024, float64(exact)/32) {
				t.Errorf("%d values: quantile %v is %v, want %v", n, q, got, exact)
			}
		}
		if h.n != uint64(n) || h.most != values[n-1] {
			t.Errorf("%d values: counted %d, longest %v instead of %v", n, h.n, h.most, values[n-1])
		}
	}
}

func TestNothingHasNoQuantile(t *testing.T) {
	var h histogram
	if got := h.quantile(0.99); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}
