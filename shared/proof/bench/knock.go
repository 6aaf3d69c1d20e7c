package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// knocker is an Agentknock client that asks its device, and counts how long it
// takes until an exchange is over: request, response and completion are each stored
// by the relay, delivered, and acknowledged by whom they are for.
type knocker struct {
	run    *knockRun
	client *peer.Client
	conn   *peer.Conn
	began  atomic.Uint64
	ended  atomic.Uint64

	mu      sync.Mutex
	open    map[string]*knock
	latency histogram
}

// knock is an exchange that is not over.
type knock struct {
	step int
	due  time.Duration
}

// knockSteps are what a client gets in the course of an exchange, in this order.
var knockSteps = [...]struct{ frame, kind string }{
	{peer.Ack, peer.Request}, {peer.Receipt, peer.Request}, {peer.Message, peer.Response}, {peer.Ack, peer.Completion}, {peer.Receipt, peer.Completion},
}

func (k *knocker) message(requestID, kind string) peer.Frame {
	return peer.Frame{Type: peer.Message, ClientID: k.client.ID, RequestID: requestID, Kind: kind, Payload: k.run.payload}
}

// begin starts an exchange that was due at some time of the run.
func (k *knocker) begin(due time.Duration) error {
	id := peer.NewID(time.Now())
	k.mu.Lock()
	k.open[id] = &knock{due: due}
	k.mu.Unlock()
	k.began.Add(1)
	return k.conn.Send(k.run.fleet.ctx, k.message(id, peer.Request))
}

// hear takes a frame. It is called by the reader of the connection.
func (k *knocker) hear(f peer.Frame) {
	if err := k.take(f); err != nil {
		k.run.fleet.fail(fmt.Errorf("asking client: %w", err))
	}
}

func (k *knocker) take(f peer.Frame) error {
	k.mu.Lock()
	x := k.open[f.RequestID]
	if x == nil || f.Type != knockSteps[x.step].frame || f.Kind != knockSteps[x.step].kind || f.ClientID != k.client.ID {
		k.mu.Unlock()
		return fmt.Errorf("an unexpected frame has come: %s", f)
	}
	x.step++
	over := x.step == len(knockSteps)
	if over {
		delete(k.open, f.RequestID)
		if from := k.run.recordFrom.Load(); int64(x.due) >= from {
			k.latency.add(time.Since(k.run.clock) - x.due)
		}
	}
	k.mu.Unlock()
	ctx := k.run.fleet.ctx
	switch {
	case f.Type == peer.Message:
		if err := k.run.same(f.Payload); err != nil {
			return err
		}
		ack := f
		ack.Type, ack.Payload = peer.Ack, nil
		if err := k.conn.Send(ctx, ack); err != nil {
			return err
		}
		return k.conn.Send(ctx, k.message(f.RequestID, peer.Completion))
	case over:
		k.ended.Add(1)
		if k.run.looping.Load() {
			return k.begin(time.Since(k.run.clock))
		}
	}
	return nil
}

// answerer is a device that answers everything at once.
type answerer struct {
	run    *knockRun
	device *peer.Device
	conn   *peer.Conn
	// What has come; all of them are equal when nothing is on its way.
	requests, acks, receipts, completions atomic.Uint64
}

func (a *answerer) hear(f peer.Frame) {
	if err := a.take(f); err != nil {
		a.run.fleet.fail(fmt.Errorf("answering device: %w", err))
	}
}

func (a *answerer) take(f peer.Frame) error {
	switch f.Type {
	case peer.Message:
		if err := a.run.same(f.Payload); err != nil {
			return err
		}
		ack := peer.Frame{Type: peer.Ack, ClientID: f.ClientID, RequestID: f.RequestID, Kind: f.Kind}
		if err := a.conn.Send(a.run.fleet.ctx, ack); err != nil {
			return err
		}
		if f.Kind == peer.Completion {
			a.completions.Add(1)
			return nil
		}
		a.requests.Add(1)
		return a.conn.Send(a.run.fleet.ctx, peer.Frame{
			Type: peer.Message, ClientID: f.ClientID, RequestID: f.RequestID, Kind: peer.Response, Payload: a.run.payload,
		})
	case peer.Ack:
		a.acks.Add(1)
	case peer.Receipt:
		a.receipts.Add(1)
	default:
		return fmt.Errorf("an unexpected frame has come: %s", f)
	}
	return nil
}

// knockRun is a number of devices with clients that ask them.
type knockRun struct {
	fleet   *fleet
	payload json.RawMessage
	clock   time.Time

	devices  []*answerer
	knockers []*knocker

	looping    atomic.Bool
	recordFrom atomic.Int64
}

// same reports a payload that is not the one that was sent.
func (r *knockRun) same(payload json.RawMessage) error {
	if string(payload) != string(r.payload) {
		return fmt.Errorf("a payload of %d bytes is not what was sent", len(payload))
	}
	return nil
}

func (r *knockRun) sum(number func(*knocker) *atomic.Uint64) (n uint64) {
	for _, k := range r.knockers {
		n += number(k).Load()
	}
	return n
}

func (r *knockRun) began() uint64 { return r.sum(func(k *knocker) *atomic.Uint64 { return &k.began }) }
func (r *knockRun) ended() uint64 { return r.sum(func(k *knocker) *atomic.Uint64 { return &k.ended }) }

// throughput measures exchanges per second, while each client has one open.
func (r *knockRun) throughput(relay Relay, what string, warmup, measure time.Duration) (n uint64, l lap, err error) {
	r.recordFrom.Store(int64(measureNothing))
	r.looping.Store(true)
	err = r.fleet.each(len(r.knockers), openers, func(i int) error { return r.knockers[i].begin(0) })
	if err == nil {
		err = r.fleet.pause(warmup)
	}
	if err != nil {
		return 0, lap{}, err
	}
	watch := start(relay, what, measure)
	n, err = r.fleet.count(measure, r.ended)
	l = watch.stop()
	r.looping.Store(false)
	if err != nil {
		return 0, lap{}, err
	}
	return n, l, r.settle()
}

// latency begins exchanges at a fixed mean rate: at random times that do not depend
// on the relay (a Poisson process), each of a random client.
func (r *knockRun) latency(relay Relay, what string, rate float64, warmup, measure time.Duration) (histogram, error) {
	at := time.Since(r.clock)
	from, end := at+warmup, at+warmup+measure
	r.recordFrom.Store(int64(from))
	watch := start(relay, what, warmup+measure)
	var err error
	for err == nil {
		at += time.Duration(rand.ExpFloat64() * float64(time.Second) / rate)
		if at >= end {
			break
		}
		if wait := at - time.Since(r.clock); wait > 0 {
			err = r.fleet.pause(wait)
		}
		if err == nil {
			err = r.knockers[rand.IntN(len(r.knockers))].begin(at)
		}
	}
	if err == nil {
		err = r.settle()
	}
	watch.stop()
	var all histogram
	for _, k := range r.knockers {
		k.mu.Lock()
		all.merge(&k.latency)
		k.mu.Unlock()
	}
	return all, r.fleet.because(err)
}

// settle waits until all exchanges are over, for their devices too.
func (r *knockRun) settle() error {
	return r.fleet.settle(func() error {
		began, ended := r.began(), r.ended()
		missing := began - ended
		if missing == 0 {
			missing = r.unsaid(ended)
		}
		if missing == 0 && began == r.began() {
			return nil
		}
		return fmt.Errorf("%d of %d exchanges are not over", missing, began)
	})
}

// unsaid is how many frames the devices lack after n exchanges.
func (r *knockRun) unsaid(n uint64) (missing uint64) {
	var requests, acks, receipts, completions uint64
	for _, a := range r.devices {
		requests += a.requests.Load()
		acks += a.acks.Load()
		receipts += a.receipts.Load()
		completions += a.completions.Load()
	}
	for _, got := range []uint64{requests, acks, receipts, completions} {
		if got > n {
			return got - n // too many: some came twice, and this never ends
		}
		missing += n - got
	}
	return missing
}
