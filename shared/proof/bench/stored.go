package bench

import (
	"fmt"
	"sync/atomic"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

const (
	// storedBatch is how many stored messages go out before the relay is asked
	// whether it has handled them; storedBatches how many such batches are on
	// their way at a time. The relay handles the messages of one connection one
	// after another, so this only bridges the way there and back.
	storedBatch   = 8
	storedBatches = 2
)

// mailbox is a home whose client is offline, and what waits for it.
type mailbox struct {
	*home
	letter *letter
	stored atomic.Uint64 // confirmed by the relay
}

// storedRun is a number of agents that write to clients which are offline.
type storedRun struct {
	fleet *fleet
	boxes []*mailbox
	size  int
	stop  atomic.Bool
}

func openStored(f *fleet, n, size int) (*storedRun, error) {
	homes, err := f.pairUpAll(n)
	if err != nil {
		return nil, err
	}
	r := &storedRun{fleet: f, size: size}
	for _, h := range homes {
		l, err := newLetter(h.client.PublicKey(), size, false, skaldclient.AgentToClient)
		if err != nil {
			return nil, err
		}
		r.boxes = append(r.boxes, &mailbox{home: h, letter: l})
	}
	return r, nil
}

// store writes until it is told to stop and all is confirmed.
func (r *storedRun) store(b *mailbox) error {
	var batch []byte
	waiting := 0
	for {
		for ; waiting < storedBatches && !r.stop.Load(); waiting++ {
			batch = batch[:0]
			for range storedBatch {
				batch = b.letter.append(batch, 0)
			}
			if err := b.agentConn.write(batch); err != nil {
				return fmt.Errorf("storing agent: %w", err)
			}
			if err := b.agentConn.send(presenceRequest()); err != nil {
				return fmt.Errorf("storing agent: %w", err)
			}
		}
		if waiting == 0 {
			return nil
		}
		if _, err := b.agentConn.await("PresenceList", isPresenceList); err != nil {
			return fmt.Errorf("storing agent: %w", err)
		}
		waiting--
		b.stored.Add(storedBatch)
	}
}

func (r *storedRun) total() (n uint64) {
	for _, b := range r.boxes {
		n += b.stored.Load()
	}
	return n
}

// throughput measures stored messages per second. Nothing is on its way when it
// returns.
func (r *storedRun) throughput(relay Relay, what string, warmup, measure time.Duration) (n uint64, l lap, err error) {
	writers := make(chan error, 1)
	go func() {
		writers <- r.fleet.each(len(r.boxes), len(r.boxes), func(i int) error { return r.store(r.boxes[i]) })
	}()
	err = r.fleet.pause(warmup)
	watch := start(relay, what, measure)
	if err == nil {
		n, err = r.fleet.count(measure, r.total)
	}
	l = watch.stop()
	r.stop.Store(true)
	if errWriters := <-writers; errWriters != nil {
		err = errWriters
	}
	return n, l, err
}
