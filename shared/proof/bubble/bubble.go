// Package bubble runs a whole relay in a synctest bubble. Its peers dial it over pipes;
// time passes only when nobody has anything to do, and what is due at a moment has
// happened when Settle returns.
package bubble

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"blindpost/shared/proof/rig"
	"blindpost/shared/proof/suite"
	"blindpost/shared/push"
	"blindpost/shared/standalone"
)

// Day is 24 hours.
const Day = 24 * time.Hour

// World is a relay and what is around it.
type World struct {
	T    *testing.T
	Cfg  standalone.Config
	Node *standalone.Node

	Pipes  *Pipes
	served chan error
	Pushes *Provider
	Log    *rig.Log
	Peers  []Peer
	nextIP int

	Secrets *suite.Secrets // what must not be in the log
	Loud    bool           // warnings are part of the story
}

// Peer is an end of a connection, as far as the world has to know.
type Peer interface {
	Drop()                 // lets go of the connection, without a word
	Done() <-chan struct{} // closed when the peer has stopped reading
}

// In tells a story about a relay with the limits of the specification, while
// others are told: most of the real time goes into waiting for the disk.
func In(t *testing.T, story func(t *testing.T, w *World), change ...func(*standalone.Config)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &World{T: t, Pushes: &Provider{}, Log: &rig.Log{}, Secrets: suite.NewSecrets()}
		w.Cfg = standalone.Config{
			DataDir:        t.TempDir(),
			Limits:         standalone.DefaultLimits(),
			Pusher:         w.Pushes,
			PushText:       push.Text{Title: "Skald", Body: "Action required"},
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Log:            slog.New(slog.NewJSONHandler(w.Log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}
		for _, f := range change {
			f(&w.Cfg)
		}
		w.Open()
		t.Cleanup(w.end)
		story(t, w)
	})
}

// Open starts the relay, on what an earlier one has left.
func (w *World) Open() {
	w.T.Helper()
	node, err := standalone.Open(w.Cfg)
	if err != nil {
		w.T.Fatalf("failed to open: %v", err)
	}
	w.Node, w.Pipes, w.served = node, newPipes(), make(chan error, 1)
	go func(l net.Listener, served chan<- error) { served <- node.Serve(context.Background(), l) }(w.Pipes, w.served)
	w.Settle()
}

// Shutdown ends the relay in good order.
func (w *World) Shutdown(spread time.Duration) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), spread+time.Minute)
	defer cancel()
	if err := w.Node.Shutdown(ctx, spread); err != nil {
		w.T.Errorf("failed to shut down: %v", err)
	}
	w.Gone()
}

// Crash ends the relay as kill -9 does: what is committed is in the file, and
// nothing comes after it. The rest of the process is cleared away afterwards.
func (w *World) Crash() {
	w.T.Helper()
	w.Loud = true // what is cleared away finds the database closed
	if err := w.Node.Database().Close(context.Background()); err != nil {
		w.T.Fatalf("failed to close the database: %v", err)
	}
	for _, p := range w.Peers {
		p.Drop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = w.Node.Shutdown(ctx, 0)
	w.Gone()
}

// Gone waits until the relay has stopped serving.
func (w *World) Gone() {
	w.T.Helper()
	if err := <-w.served; err != nil {
		w.T.Errorf("failed to serve: %v", err)
	}
	w.Node = nil
}

// Restart is a good end and a new start.
func (w *World) Restart() {
	w.T.Helper()
	w.Shutdown(0)
	w.Open()
}

// end clears up and looks at what the relay has logged.
func (w *World) end() {
	for _, p := range w.Peers {
		p.Drop()
		<-p.Done()
	}
	if w.Node != nil {
		w.Settle()
		w.Shutdown(0)
	}
	log := w.Log.Bytes()
	w.Secrets.WantSilentLog(w.T, log)
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"level":"ERROR"`) || (!w.Loud && strings.Contains(line, `"level":"WARN"`)) {
			w.T.Errorf("the relay complains: %s", line)
		}
	}
}

// NewIP returns an address of a client that nobody has had before.
func (w *World) NewIP() string {
	w.nextIP++
	return fmt.Sprintf("198.18.%d.%d", w.nextIP/256, w.nextIP%256)
}

// Settle waits until everything has happened that happens now.
func (w *World) Settle() { synctest.Wait() }

// Sleep lets time pass, then settles.
func (w *World) Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Stored lists the storage keys of the database file of a relay that is shut
// down: all that takes space, expired or not.
func (w *World) Stored() []string {
	w.T.Helper()
	db, err := bbolt.Open(filepath.Join(w.Cfg.DataDir, "blindpost.db"), 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		w.T.Fatalf("failed to open the file: %v", err)
	}
	defer db.Close()
	var keys []string
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("items")).ForEach(func(k, _ []byte) error {
			keys = append(keys, strings.ReplaceAll(string(k), "\x00", " "))
			return nil
		})
	})
	if err != nil {
		w.T.Fatalf("failed to read the file: %v", err)
	}
	return keys
}
