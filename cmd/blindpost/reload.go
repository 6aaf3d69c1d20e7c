package main

import (
	"fmt"
	"log/slog"
	"sync"

	"blindpost/shared/settings"
)

// Reloader reads the settings again while the relay runs. What changes is declared
// (Setting.Reload); for other settings that differ, the log says that they need a
// restart. Settings that are wrong change nothing.
type Reloader struct {
	parse func() (settings.Values, error)
	apply func(settings.Values)
	log   *slog.Logger
	also  []func()

	mu      sync.Mutex
	current settings.Values // as they are in force
}

// NewReloader makes a Reloader. Parse reads the settings as at start, from the
// same arguments; apply puts new limits in force.
func NewReloader(current settings.Values, parse func() (settings.Values, error), apply func(settings.Values), log *slog.Logger) *Reloader {
	return &Reloader{current: current, parse: parse, apply: apply, log: log}
}

// Also makes every Reload call f, even if the settings are wrong. It must be called
// before the first Reload.
func (r *Reloader) Also(f func()) {
	if f != nil {
		r.also = append(r.also, f)
	}
}

// Reload is what SIGHUP does. It reports whether the settings were valid.
func (r *Reloader) Reload() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.also {
		f()
	}
	fresh, err := r.parse()
	if err != nil {
		r.log.Error("settings not reloaded, the old ones hold", "error", err)
		return false
	}
	// The new limits have to fit the other settings as they are in force, not as they
	// will be after a restart.
	next := r.current.Reloaded(fresh)
	if err := checkSettings(next); err != nil {
		r.log.Error("settings not reloaded, the old ones hold", "error", fmt.Errorf("new limits do not fit the running relay: %w", err))
		return false
	}
	changed := r.current.Differences(next)
	if rest := next.Differences(fresh); len(rest) > 0 {
		r.log.Warn("some settings have changed that need a restart", "settings", rest)
	}
	if len(changed) > 0 {
		r.current = next
		r.apply(next)
	}
	r.log.Info("settings reloaded", "changed", changed)
	return true
}
