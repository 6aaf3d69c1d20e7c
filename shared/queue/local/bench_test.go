package local_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"blindpost/shared/queue"
	"blindpost/shared/queue/local"
)

// BenchmarkSendDelayed is what a new connection costs: a job for its timeout.
func BenchmarkSendDelayed(b *testing.B) {
	q := local.New(local.Options{Handler: func(context.Context, queue.Job) error { return nil }})
	defer q.Close(context.Background())
	ctx, at := b.Context(), time.Now().Add(time.Hour)
	b.ReportAllocs()
	for i := range b.N {
		if err := q.Send(ctx, queue.Job{Kind: "k", At: at.Add(time.Duration(i))}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRun is a job from Send to its end, through a few groups.
func BenchmarkRun(b *testing.B) {
	var left sync.WaitGroup
	left.Add(b.N)
	q := local.New(local.Options{Handler: func(context.Context, queue.Job) error {
		left.Done()
		return nil
	}})
	defer q.Close(context.Background())
	groups := []string{"", "a", "b", "c"}
	ctx, body := b.Context(), make([]byte, 64)
	b.ReportAllocs()
	for i := range b.N {
		if err := q.Send(ctx, queue.Job{Kind: "k", Group: groups[i%len(groups)], Body: body}); err != nil {
			b.Fatal(err)
		}
	}
	left.Wait()
}
