package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"
)

// demoStory is what the demos share: a report, chapters and a relay.
type demoStory struct {
	*demoReport
	demoSettings
	dir   string     // of the relay
	relay *demoRelay // while it runs
}

// tellChapters tells the story. A chapter returns an error if the following ones
// need what has failed in it.
func (s *demoStory) tellChapters(ctx context.Context, chapters ...func(context.Context) error) {
	for _, chapter := range chapters {
		err := chapter(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.tell("Without this, the rest makes no sense: the demo ends here.")
			return
		}
	}
}

// within runs f with the time that one thing may take.
func (s *demoStory) within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return f(ctx)
}

// startRelay starts the relay, and asks it at once whether it is well. With
// --verbose, what it logs is part of the story. path is where its peers connect.
func (s *demoStory) startRelay(ctx context.Context, path string) error {
	var show func(string)
	if s.verbose {
		show = func(line string) { s.screen.print("      relay: %s", line) }
	}
	var err error
	if s.relay, err = startDemoRelay(s.dir, s.demoSettings, show); err != nil {
		return s.check(err, "the relay starts")
	}
	return s.check(s.within(ctx, s.relay.healthy), "it serves %s, and the certificate is the one just made for it", s.relay.url(path))
}

// stopRelay ends the relay, once.
func (s *demoStory) stopRelay(ctx context.Context) {
	if s.relay == nil {
		return
	}
	// ctx may have ended; the database must be closed all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := s.relay.stop(ctx); err != nil {
		s.screen.warn("demo: the relay did not stop cleanly: %v", err)
	}
	s.relay = nil
}

// written stops the relay and returns all that it has written: its files, its log,
// and what it gave to the push provider. howMuch is that in words.
func (s *demoStory) written(ctx context.Context) (contents [][]byte, howMuch string, err error) {
	relay := s.relay
	s.stopRelay(ctx)
	files, err := relay.files()
	if err != nil {
		return nil, "", s.check(err, "the relay's files can be read")
	}
	pushes, log := relay.pushes.payloads(), relay.log.bytes()
	size := len(slices.Concat(files...))
	lines := bytes.Count(log, []byte("\n"))
	return slices.Concat([][]byte{log}, pushes, files), fmt.Sprintf("%d files with %d KiB, %d lines of log, %d pushes.", len(files), size>>10, lines, len(pushes)), nil
}
