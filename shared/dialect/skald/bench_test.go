package skald_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/relay"
	"blindpost/shared/table"
	"blindpost/shared/table/bolt"
	"blindpost/shared/table/mem"
	"blindpost/shared/table/route"
)

// sink is a front that takes everything and keeps the last challenge.
type sink struct{ posts atomic.Int64 }

func (s *sink) Post(context.Context, gateway.Conn, gateway.Message) (gateway.Outcome, error) {
	s.posts.Add(1)
	return gateway.Pending, nil
}
func (s *sink) Close(context.Context, gateway.Conn, gateway.CloseCode, string) error { return nil }
func (s *sink) Stat(context.Context, gateway.Conn) (gateway.Stat, error) {
	return gateway.Stat{}, nil
}
func (s *sink) Gone(gateway.Conn) bool { return false }

type noQueue struct{}

func (noQueue) Send(context.Context, queue.Job) error { return nil }

type noPush struct{}

func (noPush) Send(context.Context, push.Notification) error { return nil }

// bench is a relay whose peers are called directly.
type bench struct {
	tb   testing.TB
	r    *relay.Relay
	next atomic.Int64
}

func newBench(tb testing.TB) *bench {
	file, err := bolt.Open(filepath.Join(tb.TempDir(), "bench.db"), bolt.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close(context.Background()) })
	var tbl table.Table = route.New(mem.New(time.Now), []string{relay.ConnPartition, relay.AddressPartition}, file)
	b := &bench{tb: tb}
	b.r = relay.New(relay.Options{
		Table: tbl, Queue: noQueue{}, Front: &sink{}, Pusher: noPush{},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: time.Now, Random: rand.Reader,
		NewID:  func() string { return fmt.Sprint("id", b.next.Add(1)) },
		Limits: relay.Limits{MessageTTL: time.Hour},
	})
	b.r.Use(skald.New(b.r, skald.Options{Limits: skald.DefaultLimits()}))
	return b
}

// connect opens a connection and returns its challenge.
func (b *bench) connect() (gateway.Conn, []byte) {
	id := gateway.Conn(fmt.Sprint("c", b.next.Add(1)))
	res, err := b.r.Connect(context.Background(), gateway.ConnectEvent{
		Conn: id, Path: skald.Path, RemoteIP: netip.MustParseAddr("192.0.2.1"),
	})
	if err != nil || len(res.First) != 1 {
		b.tb.Fatal("no challenge", err)
	}
	var f skaldpb.RelayFrame
	if err := proto.Unmarshal(res.First[0].Data, &f); err != nil {
		b.tb.Fatal(err)
	}
	return id, f.GetChallenge().GetNonce()
}

func (b *bench) frame(id gateway.Conn, data []byte) {
	if _, err := b.r.Frame(context.Background(), gateway.FrameEvent{Conn: id, Data: data}); err != nil {
		b.tb.Fatal(err)
	}
}

func marshal(f *skaldpb.RelayFrame) []byte {
	data, err := proto.Marshal(f)
	if err != nil {
		panic(err)
	}
	return data
}

// agent authenticates a fresh agent.
func (b *bench) agent(seed int64) (gateway.Conn, ed25519.PublicKey) {
	raw := make([]byte, ed25519.SeedSize)
	copy(raw, fmt.Sprint("seed", seed))
	key := ed25519.NewKeyFromSeed(raw)
	pub := key.Public().(ed25519.PublicKey)
	id, nonce := b.connect()
	msg := append([]byte("skald-relay-auth-v1\x00"), nonce...)
	b.frame(id, marshal(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Auth{Auth: &skaldpb.Auth{
		Role:      &skaldpb.Auth_Agent{Agent: &skaldpb.AuthAgent{AgentEd25519Pub: pub}},
		Signature: ed25519.Sign(key, msg),
	}}}))
	return id, pub
}

// BenchmarkLive is the way of a live message through dialect and core, from an
// agent to itself.
func BenchmarkLive(b *testing.B) {
	s := newBench(b)
	id, pub := s.agent(1)
	data := marshal(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: &skaldpb.Message{
		Ciphertext: make([]byte, 256), Nonce: make([]byte, 12), Peer: pub, Live: true,
	}}})
	b.ReportAllocs()
	for b.Loop() {
		s.frame(id, data)
	}
}

// BenchmarkAuth is the way of an authentication, with the durable writes.
func BenchmarkAuth(b *testing.B) {
	s := newBench(b)
	var seed atomic.Int64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.agent(seed.Add(1) % 1000)
		}
	})
}
