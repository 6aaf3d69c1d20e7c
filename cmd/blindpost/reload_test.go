package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"blindpost/shared/settings"
	"blindpost/shared/standalone"
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
	read := func() (settings.Values, error) { return ParseSettings(args, io.Discard) }
	write("mailbox-cap: 10\nlisten: 127.0.0.1:1")
	start, err := read()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	var applied []standalone.Limits
	r := NewReloader(start, read, func(v settings.Values) { applied = append(applied, standalone.LimitsFrom(v)) }, slog.New(slog.NewTextHandler(&log, nil)))

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
				got += fmt.Sprintf("%d %d %d", l.Relay.MailboxCap, l.Skald.MaxLiveFrame, l.Relay.MessagesPerMinute)
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
	start := with(t)
	r := NewReloader(start, func() (settings.Values, error) { return settings.Values{}, errors.New("no") },
		func(settings.Values) { t.Error("limits were applied") }, slog.New(slog.DiscardHandler))
	if r.Reload() {
		t.Error("Reload says that it went well")
	}
}

// What Also adds runs with every reload, even if the settings are wrong.
func TestReloadDoesMore(t *testing.T) {
	r := NewReloader(with(t), func() (settings.Values, error) { return settings.Values{}, errors.New("no") },
		func(settings.Values) {}, slog.New(slog.DiscardHandler))
	done := 0
	r.Also(nil)
	r.Also(func() { done++ })
	r.Reload()
	r.Reload()
	if done != 2 {
		t.Errorf("done %d times", done)
	}
}

// Each setting that is declared to change with a reload changes one limit, and no other.
// There is a setting for each limit.
func TestReloadIsAsDeclared(t *testing.T) {
	said, base := lines(t), with(t)
	changed := map[string]string{}
	for _, s := range settings.All(settings.Binary) {
		text := said[s.Name]
		if text == "" {
			text = "arn:x" // a file, or an ARN
		}
		fresh := with(t, s.Name+"="+text)
		if s.Name == settings.PairingTTLMax.Name {
			base = with(t, "pairing-ttl=1m")
			fresh = with(t, "pairing-ttl=1m", s.Name+"="+text)
		}
		var log bytes.Buffer
		applied := base
		r := NewReloader(base, func() (settings.Values, error) { return fresh, nil }, func(v settings.Values) { applied = v }, slog.New(slog.NewTextHandler(&log, nil)))
		if !r.Reload() {
			t.Errorf("%s: %s", s.Name, &log)
			continue
		}
		var fields []string
		differ(&fields, "", reflect.ValueOf(standalone.LimitsFrom(base)), reflect.ValueOf(standalone.LimitsFrom(applied)))
		if asked := strings.Contains(log.String(), "need a restart"); s.Reload == asked || (len(fields) == 1) != s.Reload || len(fields) > 1 {
			t.Errorf("%s: reload is declared as %v, and changes %v:\n%s", s.Name, s.Reload, fields, &log)
		}
		for _, f := range fields {
			if changed[f] != "" {
				t.Errorf("%s and %s change the same limit", changed[f], s.Name)
			}
			changed[f] = s.Name
		}
		base = with(t)
	}
	var fields []string
	differ(&fields, "", reflect.ValueOf(standalone.Limits{}), reflect.Value{})
	if len(changed) != len(fields) {
		t.Errorf("%d settings for %d limits", len(changed), len(fields))
	}
}

// differ names the fields in which two structs differ, or all if there is one only.
func differ(names *[]string, path string, x, y reflect.Value) {
	for i := range x.NumField() {
		name, f, g := path+"."+x.Type().Field(i).Name, x.Field(i), y
		if y.IsValid() {
			g = y.Field(i)
		}
		if f.Kind() == reflect.Struct {
			differ(names, name, f, g)
		} else if !g.IsValid() || !f.Equal(g) {
			*names = append(*names, name)
		}
	}
}
