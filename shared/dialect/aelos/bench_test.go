package aelos

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/relay"
	"blindpost/shared/table/mem"
)

// sink is a front that takes everything and keeps nothing.
type sink struct{ n int }

func (s *sink) Post(context.Context, gateway.Conn, gateway.Message) (gateway.Outcome, error) {
	s.n++
	return gateway.Sent, nil
}
func (*sink) Close(context.Context, gateway.Conn, gateway.CloseCode, string) error { return nil }
func (*sink) Stat(context.Context, gateway.Conn) (gateway.Stat, error)             { return gateway.Stat{}, nil }
func (*sink) Gone(gateway.Conn) bool                                               { return false }

// never is a queue whose jobs do not run.
type never struct{}

func (never) Send(context.Context, queue.Job) error { return nil }

// benchRelay is a relay with a boat and eight viewers.
func benchRelay(b *testing.B) (*relay.Relay, *Dialect, *sink) {
	front, ids := &sink{}, 0
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	core := relay.New(relay.Options{
		Table: mem.New(time.Now), Queue: never{}, Front: front, Pusher: push.NewLogSender(log), Log: log,
		Now: time.Now, Random: rand.Reader, NewID: func() string { ids++; return strconv.Itoa(ids) },
	})
	limits := DefaultLimits()
	limits.BoatFrames, limits.ViewerFrames, limits.Commands = 0, 0, 0
	d := New(core, Options{Limits: limits, Secrets: func(context.Context) ([]string, error) { return []string{secretA}, nil }})
	core.Use(d)
	come := func(id gateway.Conn, hello string) {
		if _, err := core.Connect(b.Context(), gateway.ConnectEvent{Conn: id, Path: Path}); err != nil {
			b.Fatal(err)
		}
		if _, err := core.Frame(b.Context(), gateway.FrameEvent{Conn: id, Data: []byte(hello), Text: true}); err != nil {
			b.Fatal(err)
		}
	}
	come("boat", fmt.Sprintf(`{"t":"hello","proto":2,"role":"boat","token":%q}`, mint(b, secretA, boatClaims("org", "boat"))))
	for i := range 8 {
		come(gateway.Conn(fmt.Sprint("viewer", i)), fmt.Sprintf(`{"t":"hello","proto":2,"role":"viewer","token":%q}`, mint(b, secretA, controllerClaims("org", "boat"))))
	}
	return core, d, front
}

// The whole way of a snapshot through the relay, from one front to the other. The
// size of the frame makes no difference: nothing of it is copied.
func BenchmarkSnapshot(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			core, d, front := benchRelay(b)
			r, err := d.load(b.Context(), groupOf("org", "boat"))
			if err != nil || len(r.Viewers) != 8 {
				b.Fatal(r, err)
			}
			data := make([]byte, size)
			data[0] = typeSnapshot
			before := front.n
			b.SetBytes(int64(size))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				copy(data[1:], r.Viewers[n%8].Tag[:])
				if _, err := core.Frame(b.Context(), gateway.FrameEvent{Conn: "boat", Data: data}); err != nil {
					b.Fatal(err)
				}
				n++
			}
			if front.n-before != n {
				b.Errorf("%d frames in, %d out", n, front.n-before)
			}
		})
	}
}

// The way of a command.
func BenchmarkCommand(b *testing.B) {
	core, _, front := benchRelay(b)
	data := make([]byte, 1<<10)
	data[0] = typeCommand
	before, n := front.n, 0
	b.ReportAllocs()
	for b.Loop() {
		if _, err := core.Frame(b.Context(), gateway.FrameEvent{Conn: "viewer3", Data: data}); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if front.n-before != n {
		b.Errorf("%d frames in, %d out", n, front.n-before)
	}
}

// The splice by itself allocates nothing and copies nothing on the way to the viewer.
func BenchmarkSplice(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		data := make([]byte, size)
		b.Run(fmt.Sprint("out/", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = withoutTag(data, func([]byte) error { return nil })
			}
		})
		b.Run(fmt.Sprint("in/", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = withTag(tag{1, 2, 3, 4}, data, func([]byte) error { return nil })
			}
		})
	}
}
