package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	peer "blindpost/shared/client/aelos"
)

// aelosTick is how often the boat reads its instruments. A real boat does so once a
// second, which is too slow for a demo.
const aelosTick = 50 * time.Millisecond

// aelosBoat is a boat with its instruments and its anchor watch.
type aelosBoat struct {
	*aelosEnd
	net  *network
	boat *peer.Boat // guarded by mu of the end

	ticks     atomic.Int64
	published atomic.Int64
	stop      chan struct{}
	sailing   sync.WaitGroup

	sayMu sync.Mutex
	said  []string       // all that it has said
	ran   map[string]int // how often each command was received
}

func newAelosBoat(d *aelosDemo) (*aelosBoat, error) {
	n, err := newNetwork(d.relay.addr)
	if err != nil {
		return nil, err
	}
	b := &aelosBoat{net: n, stop: make(chan struct{}), ran: map[string]int{}}
	b.boat = peer.NewBoat(peer.BoatConfig{
		Keys: d.keys[0], Apps: []peer.PublicKey{d.keys[1].Public, d.keys[2].Public}, Random: rand.Reader,
	})
	b.aelosEnd = &aelosEnd{wire: d.wire, events: newDemoEvents(), receive: b.boat.Receive, react: b.command}
	return b, nil
}

// aelosSnapshot is what a boat publishes (section 7 of the specification).
type aelosSnapshot struct {
	TS      int64         `json:"ts"`
	Updates []aelosUpdate `json:"updates"`
}

type aelosUpdate struct {
	Source    string       `json:"$source"`
	Timestamp time.Time    `json:"timestamp"`
	Values    []aelosValue `json:"values"`
}

type aelosValue struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
}

const (
	aelosDepth    = "environment.depth.belowTransducer"
	aelosPosition = "navigation.position"
)

// readInstruments makes a snapshot.
func (b *aelosBoat) readInstruments(tick int64) ([]byte, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return json.Marshal(aelosSnapshot{
		TS: now.UnixMilli(),
		Updates: []aelosUpdate{{Source: "ydwg.YD", Timestamp: now, Values: []aelosValue{
			{aelosDepth, float64(42+tick%5) / 10},
			{aelosPosition, map[string]float64{"latitude": 54.3233, "longitude": 10.1228}},
		}}},
	})
}

// sail reads the instruments until stop, and publishes them while there are viewers.
func (b *aelosBoat) sail() {
	b.sailing.Go(func() {
		ticker := time.NewTicker(aelosTick)
		defer ticker.Stop()
		for {
			select {
			case <-b.stop:
				return
			case <-ticker.C:
			}
			_ = b.do(b.publish) // a connection that is over is noticed by reading
			b.ticks.Add(1)
		}
	})
}

func (b *aelosBoat) publish() ([]peer.Message, error) {
	if b.boat.Watchers() == 0 {
		return nil, nil
	}
	text, err := b.readInstruments(b.ticks.Load())
	if err != nil {
		return nil, err
	}
	all, err := b.boat.Publish(text)
	if len(all) > 0 {
		b.say(string(text))
		b.published.Add(1)
	}
	return all, err
}

// quiet waits some ticks and reports an error if one of them was published.
func (b *aelosBoat) quiet(ctx context.Context) error {
	const some = 5
	ticks, published := b.ticks.Load(), b.published.Load()
	for b.ticks.Load() < ticks+some {
		select {
		case <-time.After(aelosTick):
		case <-ctx.Done():
			return errors.New("its instruments have stopped")
		}
	}
	if n := b.published.Load() - published; n > 0 {
		return fmt.Errorf("it has published %d snapshots", n)
	}
	return nil
}

func (b *aelosBoat) say(text string) {
	b.sayMu.Lock()
	defer b.sayMu.Unlock()
	b.said = append(b.said, text)
}

// aelosCommand and aelosOutcome are a command about the anchor watch and its answer.
type aelosCommand struct {
	ID     int    `json:"id"`
	Op     string `json:"op"`
	Radius int    `json:"radius,omitempty"`
}

type aelosOutcome struct {
	ID      int    `json:"id"`
	OK      bool   `json:"ok"`
	Message string `json:"message"`
}

// command does what a viewer asks for. It is one switch, and its default refuses every
// other command.
func (b *aelosBoat) command(e peer.Event) ([]peer.Message, error) {
	r, ok := e.(peer.Received)
	if !ok || r.Type != peer.Command {
		return nil, nil
	}
	var c aelosCommand
	if err := json.Unmarshal(r.Plaintext, &c); err != nil {
		return nil, fmt.Errorf("failed to read a command: %w", err)
	}
	out := aelosOutcome{ID: c.ID, OK: true}
	b.sayMu.Lock()
	b.ran[c.Op]++
	switch c.Op {
	case "anchor/arm", "anchor/radius":
		out.Message = fmt.Sprintf("the anchor watch is armed, %d m", c.Radius)
	case "anchor/disarm":
		out.Message = "the anchor watch is off"
	case "anchor/silence":
		out.Message = "the alarm is silent"
	default:
		out.OK, out.Message = false, "there is no such command"
	}
	b.said = append(b.said, out.Message)
	b.sayMu.Unlock()
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	m, err := b.boat.Answer(r.Tag, text)
	return []peer.Message{m}, err
}

// times is how often the boat received a command.
func (b *aelosBoat) times(op string) int {
	b.sayMu.Lock()
	defer b.sayMu.Unlock()
	return b.ran[op]
}

// close ends the boat. It may be called again, and on nil.
func (b *aelosBoat) close() error {
	if b == nil {
		return nil
	}
	select {
	case <-b.stop:
	default:
		close(b.stop)
	}
	b.sailing.Wait()
	b.hangUp()
	return b.net.close()
}
