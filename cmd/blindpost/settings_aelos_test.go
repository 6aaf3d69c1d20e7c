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

	"blindpost/shared/dialect/aelos"
)

func TestAelosSecretFile(t *testing.T) {
	long, other := strings.Repeat("a", aelos.MinSecret), strings.Repeat("b", aelos.MinSecret)
	for name, tt := range map[string]struct {
		content string
		want    []string // nil: refused
	}{
		"one":       {long + "\n", []string{long}},
		"two":       {long + "\n" + other + "\n", []string{long, other}},
		"no file":   {"", nil},
		"empty":     {" \n", nil},
		"short":     {long[1:], nil},
		"one short": {long + " " + other[1:], nil},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			if tt.content != "" {
				if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := parse(t, "", "--aelos-secret-file="+file, "--aelos-path=/relay", "--aelos-controller=roles=skipper")
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			a, err := nodeAelos(s, slog.New(slog.NewTextHandler(&log, nil)))
			if tt.want == nil {
				if err == nil || !strings.Contains(err.Error(), "--aelos-secret-file: ") {
					t.Errorf("error is %v", err)
				}
			} else if err != nil {
				t.Fatal(err)
			} else if got, err := a.Secrets(context.Background()); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%q, %v", got, err)
			} else if a.Path != "/relay" || a.Controller.String() != "roles=skipper" {
				t.Errorf("%+v", a)
			}
			if err != nil && strings.Contains(err.Error(), "aaa") || strings.Contains(log.String(), "aaa") {
				t.Errorf("the secret is told: %v, %s", err, &log)
			}
		})
	}
	if a, err := nodeAelos(with(t), slog.New(slog.DiscardHandler)); err != nil || a.Secrets != nil {
		t.Errorf("without a file: %+v, %v", a, err)
	}
}

func TestDialects(t *testing.T) {
	if got := dialects(with(t)); slices.Contains(got, "aelos") {
		t.Errorf("without a secret: %v", got)
	}
	if got := dialects(with(t, "aelos-secret-file=x")); !slices.Contains(got, "aelos") {
		t.Errorf("with a secret: %v", got)
	}
}
