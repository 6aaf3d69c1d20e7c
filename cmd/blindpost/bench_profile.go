package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Measuring implements bench.Relay. With a folder for profiles it saves two of the relay:
// its processor time, for as long as the measurement is expected to take, and its memory
// at the end.
func (c *benchChild) Measuring(what string, expect time.Duration) (done func()) {
	if c.profile == "" {
		return func() {}
	}
	var wg sync.WaitGroup
	if seconds := int(expect / time.Second); seconds > 0 {
		wg.Go(func() { c.fetch(fmt.Sprintf("profile?seconds=%d", seconds), what+".cpu.pprof") })
	}
	return func() {
		wg.Wait()
		c.fetch("heap", what+".heap.pprof")
	}
}

// fetch saves a profile. A missing profile does not stop the measurement.
func (c *benchChild) fetch(query, name string) {
	if err := c.tryFetch(query, filepath.Join(c.profile, name)); err != nil {
		fmt.Fprintf(c.said, "no profile %s: %v\n", name, err)
	}
}

func (c *benchChild) tryFetch(query, name string) error {
	resp, err := http.Get("http://" + c.metrics + "/debug/pprof/" + query)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}
