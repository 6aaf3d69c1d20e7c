package secret_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"blindpost/shared/settings/secret"
)

// source is a place that a secret is read from.
type source struct {
	text  string
	err   error
	reads int
	now   time.Time
	log   bytes.Buffer
}

func (s *source) open(long bool) *secret.Rotating {
	return secret.New(secret.Options{
		Read: func(context.Context) (string, error) { s.reads++; return s.text, s.err },
		Long: long,
		Now:  func() time.Time { return s.now },
		Log:  slog.New(slog.NewTextHandler(&s.log, nil)),
	})
}

func (s *source) pass(d time.Duration) { s.now = s.now.Add(d) }

const oldValue, newValue = "the-old-secret-of-the-front", "the-new-secret-of-the-front"

func wantCheck(t *testing.T, w *secret.Rotating, value string, want bool) {
	t.Helper()
	if got, err := w.Check(context.Background(), value); err != nil || got != want {
		t.Errorf("check of %q is %v, %v, want %v", value, got, err, want)
	}
}

func TestRotation(t *testing.T) {
	s := &source{text: oldValue + "\n", now: time.Unix(1e9, 0)}
	w := s.open(true)
	wantCheck(t, w, oldValue, true)
	wantCheck(t, w, newValue, false)
	wantCheck(t, w, "", false)
	wantCheck(t, w, oldValue+"\n", false)

	s.text = oldValue + " " + newValue
	wantCheck(t, w, newValue, false) // not read again yet
	s.pass(secret.MaxAge)
	wantCheck(t, w, newValue, true)
	wantCheck(t, w, oldValue, true)
	if got, err := w.Current(context.Background()); got != oldValue || err != nil {
		t.Errorf("current value is %q, %v", got, err)
	}

	s.text = newValue
	s.pass(time.Second)
	if w.Forget() {
		t.Error("values that were read a second ago were forgotten")
	}
	s.pass(time.Minute)
	if !w.Forget() {
		t.Error("values of a minute ago were not forgotten")
	}
	wantCheck(t, w, oldValue, false)
	wantCheck(t, w, newValue, true)
	if s.reads != 3 {
		t.Errorf("%d reads, want 3", s.reads)
	}
}

func TestFailedRead(t *testing.T) {
	s := &source{err: errors.New("unreachable"), now: time.Unix(1e9, 0)}
	w := s.open(true)
	if _, err := w.Check(context.Background(), oldValue); err == nil {
		t.Error("a secret that cannot be read was checked")
	}
	s.text, s.err = oldValue, nil
	wantCheck(t, w, oldValue, true)
	s.text, s.err = "", errors.New("unreachable again")
	s.pass(secret.MaxAge)
	wantCheck(t, w, oldValue, true)
	if log := s.log.String(); !strings.Contains(log, "unreachable again") || strings.Contains(log, oldValue) {
		t.Errorf("log: %s", log)
	}
}

func TestUnusableValues(t *testing.T) {
	for _, text := range []string{"", " \n", "short", oldValue + " short"} {
		w := (&source{text: text}).open(true)
		ok, err := w.Check(context.Background(), text)
		if ok || err == nil || strings.Contains(err.Error(), "short ") {
			t.Errorf("%q: %v, %v", text, ok, err)
		}
		if got, err := w.Current(context.Background()); got != "" || err == nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	w := (&source{text: ""}).open(false)
	wantCheck(t, w, "", false)
}

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "data", "callback-secret")
	// The name may by mistake be the secret.
	if _, err := secret.File(name)(context.Background()); !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "callback-secret") {
		t.Errorf("error is %v", err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 8 {
		wg.Go(func() {
			ok, err := secret.EnsureFile(name)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ok {
				made++
			}
		})
	}
	wg.Wait()
	first, err := secret.File(name)(context.Background())
	if err != nil || len(strings.TrimSpace(first)) < 20 || made != 1 {
		t.Fatalf("made %d times; %d characters, %v", made, len(first), err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := os.WriteFile(name, bytes.Repeat([]byte("x"), 65<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secret.File(name)(context.Background()); err == nil {
		t.Error("a file that is too large was read")
	}
}
