package server

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// echoHandler answers each frame with itself and allocates nothing.
type echoHandler struct{ s *Server }

func (echoHandler) Connect(context.Context, gateway.ConnectEvent) (gateway.ConnectResult, error) {
	return gateway.ConnectResult{ReadLimit: 1 << 20}, nil
}

func (h echoHandler) Frame(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
	_, err := h.s.Post(ctx, e.Conn, gateway.Message{Data: e.Data})
	return gateway.FrameResult{}, err
}
func (echoHandler) Confirmed(context.Context, gateway.ConfirmedEvent) error   { return nil }
func (echoHandler) Disconnect(context.Context, gateway.DisconnectEvent) error { return nil }

// benchServer serves echoes, and dials to it.
func benchServer(b *testing.B, secure bool) (dial func() *rawPeer) {
	serverTLS, clientTLS := testCert()
	var h echoHandler
	s := newServer(b, &h, func(o *Options) {
		if secure {
			o.TLS = serverTLS
		}
	})
	h.s = s
	addr := serve(b, s)
	return func() *rawPeer {
		var p *rawPeer
		if secure {
			p = upgraded(b, dialTLS(b, addr, clientTLS))
		} else {
			p = dialRaw(b, addr)
		}
		if err := p.SetDeadline(time.Time{}); err != nil {
			b.Fatal(err)
		}
		return p
	}
}

// BenchmarkEchoPipelined has 8 peers that send 64 messages in one write and do
// not wait for the answers, as long as no more than 512 are missing (or they
// would be slow readers). One op is a message there and back.
func BenchmarkEchoPipelined(b *testing.B) {
	for _, mode := range []string{"plain", "TLS"} {
		for _, size := range []int{128, 4096} {
			b.Run(mode+"/"+byteSize(size), func(b *testing.B) {
				const peers, batch = 8, 64
				dial := benchServer(b, mode == "TLS")
				ps := make([]*rawPeer, peers)
				for i := range ps {
					ps[i] = dial()
				}
				frames := bytes.Repeat(binaryMsg(repeat(size)), batch)
				answer := frameSize(size)
				each := b.N/peers + 1
				b.ReportAllocs()
				b.SetBytes(int64(size))
				b.ResetTimer()
				var wg sync.WaitGroup
				for _, p := range ps {
					window := make(chan struct{}, 8)
					wg.Go(func() {
						for left := each; left > 0; left -= batch {
							window <- struct{}{}
							n := min(left, batch) * (len(frames) / batch)
							if _, err := p.Write(frames[:n]); err != nil {
								b.Error(err)
								return
							}
						}
					})
					wg.Go(func() {
						for left := each; left > 0; left -= batch {
							if _, err := p.br.Discard(min(left, batch) * answer); err != nil {
								b.Error(err)
								return
							}
							<-window
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
			})
		}
	}
}

// BenchmarkEchoRoundTrip has peers that wait for each answer.
func BenchmarkEchoRoundTrip(b *testing.B) {
	for _, mode := range []string{"plain", "TLS"} {
		b.Run(mode, func(b *testing.B) {
			const peers, size = 64, 128
			dial := benchServer(b, mode == "TLS")
			ps := make([]*rawPeer, peers)
			for i := range ps {
				ps[i] = dial()
			}
			frame := binaryMsg(repeat(size))
			each := b.N/peers + 1
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for _, p := range ps {
				wg.Go(func() {
					answer := make([]byte, frameSize(size))
					for range each {
						if _, err := p.Write(frame); err != nil {
							b.Error(err)
							return
						}
						if _, err := io.ReadFull(p.br, answer); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

// sink is a transport that takes everything.
type sink struct{ net.Conn }

func (sink) Read([]byte) (int, error)         { select {} }
func (sink) Write(b []byte) (int, error)      { return len(b), nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkPost is the sender's side only.
func BenchmarkPost(b *testing.B) {
	s := newServer(b, echoHandler{})
	c := newConn(s, "bench")
	s.conns.add(c)
	c.accept(gateway.ConnectResult{}, nil)
	c.nc = sink{} // no read goroutine, as nothing comes
	m := gateway.Message{Data: make([]byte, 128)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Post(context.Background(), "bench", m); err != nil {
			b.Fatal(err)
		}
		if i%1024 == 0 {
			c.awaitWriter() // it is no slow reader
		}
	}
	c.awaitWriter()
}

func BenchmarkGone(b *testing.B) {
	s := newServer(b, echoHandler{})
	c := newConn(s, "bench")
	s.conns.add(c)
	c.accept(gateway.ConnectResult{}, nil)
	b.ReportAllocs()
	for b.Loop() {
		if s.Gone("bench") {
			b.Fatal("gone")
		}
	}
}

func byteSize(n int) string {
	if n < 1024 {
		return "128B"
	}
	return "4KiB"
}
