package main

import (
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// Reloader reads the settings again while the relay runs. Only the Limits
// change; for other settings that differ, the log says that they need a restart.
// Settings that are wrong change nothing.
type Reloader struct {
	parse func() (Settings, error)
	apply func(Limits)
	log   *slog.Logger
	also  []func()

	mu      sync.Mutex
	current Settings // as they are in force
}

// NewReloader makes a Reloader. Parse reads the settings as at start, from the
// same arguments; apply puts new limits in force.
func NewReloader(current Settings, parse func() (Settings, error), apply func(Limits), log *slog.Logger) *Reloader {
	return &Reloader{current: current, parse: parse, apply: apply, log: log}
}

// Also has f done with every Reload, whatever is in the settings. It is called before
// the first one.
func (r *Reloader) Also(f func()) {
	if f != nil {
		r.also = append(r.also, f)
	}
}

// Reload is what SIGHUP does. It reports whether the settings were fit to be
// used.
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
	// The new limits have to fit to the rest as it is now, not as it will be
	// after a restart.
	next := r.current
	next.Limits = fresh.Limits
	if err := next.check(); err != nil {
		r.log.Error("settings not reloaded, the old ones hold", "error", fmt.Errorf("new limits do not fit the running relay: %w", err))
		return false
	}
	changed := differences(r.current, next)
	if rest := differences(next, fresh); len(rest) > 0 {
		r.log.Warn("some settings have changed that need a restart", "settings", rest)
	}
	if len(changed) > 0 {
		r.current = next
		r.apply(next.Limits)
	}
	r.log.Info("settings reloaded", "changed", changed)
	return true
}

// differences names the settings in which a and b differ.
func differences(a, b Settings) []string {
	inB := b.flags(new(string))
	var names []string
	a.flags(new(string)).VisitAll(func(f *flag.Flag) {
		if f.Value.String() != inB.Lookup(f.Name).Value.String() {
			names = append(names, f.Name)
		}
	})
	slices.Sort(names)
	return names
}
