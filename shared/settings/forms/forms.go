// Package forms reads the written forms of settings, which are the same for the
// binary and for the functions. The errors say what a value must be, and never quote it.
package forms

import (
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count reads a whole number that is not negative.
func Count(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, errors.New("it must be a whole number, 0 or more")
	}
	return n, nil
}

var sizeUnits = []struct {
	suffix string
	bits   uint
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}

// Size reads a number of bytes: 65536, 64KiB, 4MiB.
func Size(s string) (int64, error) {
	digits, bits := s, uint(0)
	for _, u := range sizeUnits {
		if d, ok := strings.CutSuffix(s, u.suffix); ok {
			digits, bits = d, u.bits
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n < 0 || n<<bits>>bits != n {
		return 0, errors.New("it must be a number of bytes, such as 65536, 64KiB or 4MiB")
	}
	return n << bits, nil
}

// FormatSize writes a number of bytes in the largest unit that is exact.
func FormatSize(n int64) string {
	for i := len(sizeUnits) - 1; i >= 0; i-- {
		if u := sizeUnits[i]; n != 0 && n%(1<<u.bits) == 0 {
			return strconv.FormatInt(n>>u.bits, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// Duration reads a time with its unit: 30s, 168h, 7d. A day has 24 hours.
func Duration(s string) (time.Duration, error) {
	d, ok := parseDuration(s)
	if !ok || d < 0 {
		return 0, errors.New("it must be a time with its unit, such as 500ms, 30s, 168h or 7d")
	}
	return d, nil
}

// parseDuration is time.ParseDuration with days in front.
func parseDuration(s string) (time.Duration, bool) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		d, err := time.ParseDuration(s)
		return d, err == nil
	}
	const most = uint64(math.MaxInt64 / (24 * time.Hour))
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > most {
		return 0, false
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, true
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || d > math.MaxInt64-more {
		return 0, false
	}
	return d + more, true
}

// Level reads the level of a log.
func Level(s string) (slog.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	default:
		return 0, errors.New("it must be debug, info, warn or error")
	}
}
