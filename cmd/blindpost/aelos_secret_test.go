package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/settings/secret"
)

// A mistake in the secret file refuses no peer: the last good secret still counts, and
// each failed reading is logged once.
func TestAelosSecretSlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, next := strings.Repeat("a", aelos.MinSecret), strings.Repeat("b", aelos.MinSecret)
		file := filepath.Join(t.TempDir(), "secret")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(good)
		var log bytes.Buffer
		a, err := nodeAelos(with(t, "aelos-secret-file="+file), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		want := func(words ...string) {
			t.Helper()
			for range 3 {
				if got, err := a.Secrets(context.Background()); err != nil || !slices.Equal(got, words) {
					t.Errorf("%q, %v", got, err)
				}
			}
		}
		for n, slip := range []string{"", " \n", "short", good + " short"} {
			write(slip)
			time.Sleep(secret.MaxAge)
			want(good)
			if got := strings.Count(log.String(), "level=WARN"); got != n+1 {
				t.Errorf("%d warnings after %d readings:\n%s", got, n+1, &log)
			}
		}
		write(good + " " + next)
		want(good)
		a.Reread() // SIGHUP
		want(good, next)
		if strings.Contains(log.String(), "short\n") || strings.Contains(log.String(), "aaa") {
			t.Errorf("the log holds a secret:\n%s", &log)
		}
	})
}

// A secret in place of the name of its file is not in the error.
func TestSecretInsteadOfItsFile(t *testing.T) {
	const given = "a-secret-and-not-the-name-of-a-file"
	_, err := nodeAelos(with(t, "aelos-secret-file="+given), slog.New(slog.DiscardHandler))
	if err == nil || strings.Contains(err.Error(), given) || !strings.Contains(err.Error(), "aelos-secret-file: ") {
		t.Errorf("error is %v", err)
	}
}
