package wiring_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"blindpost/functions/internal/wiring"
)

// Whatever a function is called with: it answers or fails, and does not panic.
func FuzzInvoke(f *testing.F) {
	functions := []wiring.Function{wiring.Connect, wiring.Message, wiring.Disconnect, wiring.Sweeper}
	for i, fn := range functions {
		samples, err := filepath.Glob(filepath.Join("..", "..", string(fn), "testdata", "*.json"))
		if err != nil || len(samples) == 0 {
			f.Fatalf("no samples of %s: %v", fn, err)
		}
		for _, name := range samples {
			payload, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), payload)
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, payload []byte) {
		d := newDesk(t, wiring.Message)
		_, _ = d.Invoke(t.Context(), functions[int(n)%len(functions)], payload)
		if bytes.Contains(d.log.Bytes(), []byte("panicked")) {
			t.Errorf("%s", d.log.Bytes())
		}
	})
}
