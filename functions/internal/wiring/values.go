package wiring

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"
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

// count reads a whole number that is not negative.
func count(v *int64) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return errors.New("it must be a whole number, 0 or more")
		}
		*v = n
		return nil
	}
}

// size reads a number of bytes: 65536, 64KiB, 4MiB.
func size(v *int64) func(string) error {
	return func(s string) error {
		digits, bits := s, 0
		for i, suffix := range []string{"KiB", "MiB", "GiB"} {
			if d, ok := strings.CutSuffix(s, suffix); ok {
				digits, bits = d, 10*(i+1)
			}
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n<<bits>>bits != n {
			return errors.New("it must be a number of bytes, such as 65536, 64KiB or 4MiB")
		}
		*v = n << bits
		return nil
	}
}

// duration reads a time with its unit: 30s, 168h.
func duration(v *time.Duration) func(string) error {
	return func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return errors.New("it must be a time with its unit, such as 500ms, 30s or 168h")
		}
		*v = d
		return nil
	}
}

func level(v *slog.Level) func(string) error {
	levels := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	return func(s string) error {
		l, ok := levels[strings.ToLower(s)]
		if !ok {
			return errors.New("it must be debug, info, warn or error")
		}
		*v = l
		return nil
	}
}
