package panics

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestLogHidesTheValue(t *testing.T) {
	for what, f := range map[string]func(){
		"panic=string":              func() { panic("sealed") },
		"slice bounds out of range": func() { _ = []byte("sealed")[len(t.Name()):] },
	} {
		var out bytes.Buffer
		func() {
			defer func() {
				Log(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), "job panicked", recover(), "kind", "push")
			}()
			f()
		}()
		got := out.String()
		for _, want := range []string{"job panicked", "kind=push", what, "TestLogHidesTheValue"} {
			if !strings.Contains(got, want) {
				t.Errorf("there is no %q in %s", want, got)
			}
		}
		if strings.Contains(got, "sealed") {
			t.Errorf("the value is in %s", got)
		}
	}
}
