package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	peer "blindpost/shared/client/aelos"
)

// aelosViewer is an app ashore.
type aelosViewer struct {
	*aelosEnd
	name   string
	viewer *peer.Viewer // guarded by mu of the end
	said   []string     // the demo's own goroutine's
	ids    int
}

func newAelosViewer(d *aelosDemo, name string, keys peer.KeyPair) *aelosViewer {
	v := &aelosViewer{name: name}
	v.viewer = peer.NewViewer(peer.ViewerConfig{Keys: keys, Boat: d.keys[0].Public, Random: rand.Reader})
	v.aelosEnd = &aelosEnd{wire: d.wire, events: newDemoEvents(), receive: v.viewer.Receive}
	return v
}

// instruments waits for a snapshot and reads it.
func (v *aelosViewer) instruments(ctx context.Context) (aelosSnapshot, error) {
	var s aelosSnapshot
	r, err := awaitEvent(ctx, v.events, "a snapshot", func(r peer.Received) bool { return r.Type == peer.Snapshot })
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(r.Plaintext, &s); err != nil {
		return s, errors.New("the message is no snapshot")
	}
	return s, nil
}

// overlook drops the snapshots that came so far: what comes next is new.
func (v *aelosViewer) overlook() {
	for {
		if _, ok, _ := takeEvent(v.events, func(r peer.Received) bool { return r.Type == peer.Snapshot }); !ok {
			return
		}
	}
}

// depth is the depth in a snapshot.
func (s aelosSnapshot) depth() (float64, error) {
	for _, u := range s.Updates {
		for _, v := range u.Values {
			if m, ok := v.Value.(float64); ok && v.Path == aelosDepth {
				return m, nil
			}
		}
	}
	return 0, errors.New("the snapshot has no depth")
}

// order sends a command.
func (v *aelosViewer) order(op string, radius int) (int, error) {
	v.ids++
	text, err := json.Marshal(aelosCommand{ID: v.ids, Op: op, Radius: radius})
	if err != nil {
		return 0, err
	}
	v.said = append(v.said, string(text), op)
	return v.ids, v.do(func() ([]peer.Message, error) {
		m, err := v.viewer.Command(text)
		return []peer.Message{m}, err
	})
}

// ask sends a command and waits for what the boat says.
func (v *aelosViewer) ask(ctx context.Context, op string, radius int) (aelosOutcome, error) {
	var out aelosOutcome
	id, err := v.order(op, radius)
	if err != nil {
		return out, err
	}
	r, err := awaitEvent(ctx, v.events, "the boat's answer", func(r peer.Received) bool { return r.Type == peer.Outcome })
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(r.Plaintext, &out); err != nil {
		return out, fmt.Errorf("failed to read the answer: %w", err)
	}
	if out.ID != id {
		return out, errors.New("the answer is about something else")
	}
	return out, nil
}

// close ends the viewer. It may be called again, and on nil.
func (v *aelosViewer) close() error {
	if v != nil {
		v.hangUp()
	}
	return nil
}
