package wiring

import (
	"log/slog"
	"strings"
	"time"

	"blindpost/shared/settings/forms"
)

// What follows makes the functions that read a value into a setting. The forms
// are those of `blindpost serve`.

func text(v *string) func(string) error {
	return func(s string) error {
		*v = s
		return nil
	}
}

// list reads texts that are separated by commas.
func list(v *[]string) func(string) error {
	return func(s string) error {
		*v = nil
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*v = append(*v, part)
			}
		}
		return nil
	}
}

// into reads a value in one of the forms that the binary knows too.
func into[T any](v *T, read func(string) (T, error)) func(string) error {
	return func(s string) error {
		got, err := read(s)
		if err != nil {
			return err
		}
		*v = got
		return nil
	}
}

func count(v *int64) func(string) error            { return into(v, forms.Count) }
func size(v *int64) func(string) error             { return into(v, forms.Size) }
func duration(v *time.Duration) func(string) error { return into(v, forms.Duration) }
func level(v *slog.Level) func(string) error       { return into(v, forms.Level) }
