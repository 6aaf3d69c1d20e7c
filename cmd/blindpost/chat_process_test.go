package main

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for an output. Only tests that fail wait so long.
const patience = 30 * time.Second

// testRelay starts a relay and returns it with the file of its certificate.
func testRelay(t *testing.T) (r *demoRelay, ca string) {
	t.Helper()
	r, err := startDemoRelay(filepath.Join(t.TempDir(), "relay"), defaultDemo(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.stop(ctx); err != nil {
			t.Errorf("failed to stop the relay: %v", err)
		}
	})
	ca = filepath.Join(t.TempDir(), "relay.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.cert}), 0o600); err != nil {
		t.Fatal(err)
	}
	return r, ca
}

// process is a command that runs in this process, with pipes as its input and output.
type process struct {
	t    *testing.T
	name string
	keys io.WriteCloser
	out  *transcript
	stop context.CancelFunc
	done chan struct{}
	code int
}

// start runs a command.
func start(t *testing.T, name string, run func(context.Context, env, []string) int, args ...string) *process {
	t.Helper()
	in, keys := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{
		t: t, name: name, keys: keys, stop: cancel,
		out:  &transcript{changed: make(chan struct{})},
		done: make(chan struct{}),
	}
	go func() {
		defer close(p.done)
		// What is typed after the end goes nowhere, as with a shell's pipe.
		defer in.CloseWithError(errors.New("the command has ended"))
		p.code = run(ctx, env{stdin: in, stdout: p.out, stderr: p.out}, args)
	}()
	t.Cleanup(func() {
		cancel()
		_ = keys.Close()
		<-p.done
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, p.out.all())
		}
	})
	return p
}

// enter types a line.
func (p *process) enter(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keys, text+"\n"); err != nil {
		p.t.Fatalf("%s takes no input: %v", p.name, err)
	}
}

// expect waits until a text is printed, behind what was expected before, and
// returns the line it is in.
func (p *process) expect(text string) string {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		line, found, changed := p.out.find(text)
		if found {
			return line
		}
		select {
		case <-changed:
		case <-p.done:
			if line, found, _ := p.out.find(text); found {
				return line
			}
			p.t.Fatalf("%s has ended with %d and did not print %q", p.name, p.code, text)
		case <-timeout:
			p.t.Fatalf("%s does not print %q", p.name, text)
		}
	}
}

// hasPrinted is expect for a text that may have been printed before.
func (p *process) hasPrinted(text string) {
	p.t.Helper()
	seen := p.out.rewind(0)
	p.expect(text)
	p.out.rewind(seen)
}

// ends waits for the end and checks the exit status.
func (p *process) ends(status int) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end", p.name)
	}
	if p.code != status {
		p.t.Fatalf("%s ended with %d, want %d", p.name, p.code, status)
	}
}

// hangUp ends the input.
func (p *process) hangUp() { _ = p.keys.Close() }

// transcript is all that a process has printed.
type transcript struct {
	mu      sync.Mutex
	text    string
	seen    int // up to where expect has looked
	changed chan struct{}
}

func (w *transcript) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += string(b)
	close(w.changed)
	w.changed = make(chan struct{})
	return len(b), nil
}

func (w *transcript) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text
}

// rewind sets up to where expect has looked, and returns where that was.
func (w *transcript) rewind(to int) (from int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, w.seen = w.seen, to
	return from
}

// find looks for a text in whole lines.
func (w *transcript) find(text string) (line string, found bool, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := strings.Index(w.text[w.seen:], text)
	if i < 0 {
		return "", false, w.changed
	}
	i += w.seen
	end := strings.IndexByte(w.text[i:], '\n')
	if end < 0 {
		return "", false, w.changed
	}
	begin := strings.LastIndexByte(w.text[:i], '\n') + 1
	w.seen = i + len(text)
	return w.text[begin : i+end], true, nil
}

// restart stops the relay and starts another one in its place: same address,
// same folder, same certificate.
func (r *demoRelay) restart(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.open(r.addr, defaultDemo().limits); err != nil {
		t.Fatal(err)
	}
}
