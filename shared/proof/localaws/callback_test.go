//go:build aws

package localaws_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blindpost/shared/proof/localaws"
)

// wire is between the functions and the front: it can answer in its stead.
type wire struct {
	proxy *httputil.ReverseProxy
	stop  chan struct{}

	mu    sync.Mutex
	ids   []string // connections, in the order in which they were first called about
	fault func(id string) int
	calls atomic.Int64 // that were answered in its stead
}

// hang is the status of a call that gets no answer.
const hang = -1

func newWire(t *testing.T, front string) *wire {
	u, err := url.Parse(front)
	if err != nil {
		t.Fatal(err)
	}
	return &wire{stop: make(chan struct{}), proxy: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}}
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	_, id, _ := strings.Cut(r.URL.Path, "/@connections/")
	w.mu.Lock()
	known := false
	for _, other := range w.ids {
		known = known || other == id
	}
	if !known {
		w.ids = append(w.ids, id)
	}
	fault := w.fault
	w.mu.Unlock()
	status := 0
	if fault != nil {
		status = fault(id)
	}
	switch status {
	case 0:
		w.proxy.ServeHTTP(rw, r)
	case hang:
		w.calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see the caller hang up
		select {
		case <-r.Context().Done():
		case <-w.stop:
		}
	default:
		w.calls.Add(1)
		rw.WriteHeader(status)
	}
}

// last is the connection that was first called about last.
func (w *wire) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ids[len(w.ids)-1]
}

func (w *wire) set(fault func(id string) int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = fault
}

func openWired(t *testing.T, p plan) (*front, *wire) {
	var w *wire
	p.through = func(t *testing.T, front string) string {
		w = newWire(t, front)
		s := httptest.NewServer(w)
		t.Cleanup(func() {
			close(w.stop)
			s.CloseClientConnections()
			s.Close()
		})
		return s.URL
	}
	return open(t, p), w
}

// Whatever @connections answers about the phone, its letters arrive, in order.
func TestConnectionsThatFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status  int
		calls   int64 // that fail so, before it gets better; 0: until it comes back
		offline bool  // the phone counts as gone
	}{
		"429 for a moment": {status: 429, calls: 3},
		"429 for longer":   {status: 429, calls: 25},
		"503":              {status: 503, calls: 4},
		"hangs once":       {status: hang, calls: 1},
		"hangs for longer": {status: hang, calls: 5},
		"410":              {status: 410, offline: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := openWired(t, plan{ingress: true, house: localaws.Options{Env: roomy, IngressAttempts: 10}})
			h, agent := f.household()
			phone := h.dialPhone()
			id := w.last()
			agent.send(h.letter(0))
			phone.wantLetters(0, 0, false)
			w.set(func(other string) int {
				if other != id || (tt.calls > 0 && w.calls.Load() >= tt.calls) {
					return 0
				}
				return tt.status
			})
			for n := 1; n <= 20; n++ {
				agent.send(h.letter(n))
			}
			if tt.offline {
				agent.barrier()
				if len(f.Pushes()) == 0 {
					t.Error("the phone was not woken")
				}
				phone = h.dialPhone() // another connection
			}
			// A call that was given up may have got through.
			phone.wantLetters(1, 20, true)
			if w.calls.Load() == 0 {
				t.Error("nothing went wrong")
			}
			wantNothingDead(t, f)
		})
	}
}

// Two fronts share the functions, and the members of a household are at different
// ones. When one is no more, its members are not there, and nothing that was sent to
// them is lost.
func TestTwoFronts(t *testing.T) {
	t.Parallel()
	for _, ingress := range []bool{false, true} {
		t.Run(fmt.Sprintf("ingress=%t", ingress), func(t *testing.T) {
			t.Parallel()
			f := open(t, plan{ingress: ingress, house: localaws.Options{Env: roomy}})
			h, agent := f.household()
			other := f.another()
			away := *h
			away.f = other
			phone := away.dialPhone()
			for n := range 20 {
				agent.send(h.letter(n))
			}
			phone.wantLetters(0, 19, false)
			phone.send(letter(h.agent.PublicKey(), 7))
			agent.wantLetters(7, 7, false)

			other.end(os.Kill)
			for n := 20; n < 40; n++ {
				agent.send(h.letter(n))
			}
			agent.barrier()
			for end := time.Now().Add(patience); len(f.Pushes()) == 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the phone was not woken")
				}
			}
			h.dialPhone().wantLetters(20, 39, true)
			wantNothingDead(t, f)
		})
	}
}

// What the front logs, and what the functions log, holds neither the secret nor what
// is sent.
func TestNoSecretInTheLog(t *testing.T) {
	f := open(t, plan{house: localaws.Options{Env: roomy}})
	h, agent := f.household()
	phone := h.dialPhone()
	agent.send(h.letter(0))
	phone.wantLetters(0, 0, false)
	log := string(f.log.Bytes())
	if len(log) < 100 {
		t.Fatalf("the log has %d bytes", len(log))
	}
	for _, secret := range []string{"the-secret-of-the-fronts", "letter 0 of a test", "device-token-of-the-phone"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}
