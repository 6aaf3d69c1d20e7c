package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReload edits the settings file of a running relay, several times.
func TestReload(t *testing.T) {
	name := filepath.Join(t.TempDir(), "blindpost.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--config", name, "--messages-per-minute=5"}
	read := func() (Settings, error) { return ParseSettings(args, io.Discard) }
	write("mailbox-cap: 10\nlisten: 127.0.0.1:1")
	start, err := read()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	var applied []Limits
	r := NewReloader(start, read, func(l Limits) { applied = append(applied, l) }, slog.New(slog.NewTextHandler(&log, nil)))

	steps := []struct {
		file    string
		ok      bool
		applied string // mailbox-cap, max-live-frame, messages-per-minute; "" for no call
		log     string
	}{
		{"mailbox-cap: 20\nlisten: 127.0.0.1:1", true, "20 524288 5", "changed=[mailbox-cap]"},
		{"mailbox-cap: 20\nlisten: 127.0.0.1:1", true, "", "changed=[]"},
		{"mailbox-cap: nonsense\nlisten: 127.0.0.1:1", false, "", "mailbox-cap"},
		{"mailbox-cup: 30", false, "", "mailbox-cup"},
		{"mailbox-cap: 30\nmessage-ttl: 0s", false, "", "message-ttl"},
		{"mailbox-cap: 30\nlisten: 127.0.0.1:2\nlog-level: debug\nmessages-per-minute: 9", true, "30 524288 5", "settings=\"[listen log-level]\""},
		// The new frames would fit only into the new buffer, which needs a restart.
		{"mailbox-cap: 40\nmax-live-frame: 8MiB\nsend-buffer: 16MiB", false, "", "send-buffer"},
		{"mailbox-cap: 40\nmax-live-frame: 4MiB\nsend-buffer: 16MiB", true, "40 4194304 5", "changed=\"[mailbox-cap max-live-frame]\""},
	}
	for i, step := range steps {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			log.Reset()
			applied = nil
			write(step.file)
			if ok := r.Reload(); ok != step.ok {
				t.Errorf("Reload says %v", ok)
			}
			got := ""
			for _, l := range applied {
				got += fmt.Sprintf("%d %d %d", l.MailboxCap, l.MaxLiveFrame, l.MessagesPerMinute)
			}
			if got != step.applied {
				t.Errorf("applied %q, want %q", got, step.applied)
			}
			if !strings.Contains(log.String(), step.log) {
				t.Errorf("log lacks %q:\n%s", step.log, log.String())
			}
		})
	}

	t.Run("the file is gone", func(t *testing.T) {
		log.Reset()
		applied = nil
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if r.Reload() || applied != nil || !strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("applied %v, log:\n%s", applied, log.String())
		}
	})
}

func TestReloadKeepsLimitsOnAnyError(t *testing.T) {
	start := defaultSettings()
	r := NewReloader(start, func() (Settings, error) { return Settings{}, errors.New("no") },
		func(Limits) { t.Error("limits were applied") }, slog.New(slog.DiscardHandler))
	if r.Reload() {
		t.Error("Reload says that it went well")
	}
}

// Some things are read again whatever is in the settings.
func TestReloadDoesMore(t *testing.T) {
	r := NewReloader(defaultSettings(), func() (Settings, error) { return Settings{}, errors.New("no") },
		func(Limits) {}, slog.New(slog.DiscardHandler))
	done := 0
	r.Also(nil)
	r.Also(func() { done++ })
	r.Reload()
	r.Reload()
	if done != 2 {
		t.Errorf("done %d times", done)
	}
}
