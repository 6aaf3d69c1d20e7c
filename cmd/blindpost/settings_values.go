package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// The flag.Values of the settings. They print themselves in the form in which
// they are read.

var (
	_ flag.Value = (*stringValue)(nil)
	_ flag.Value = (*boolValue)(nil)
	_ flag.Value = (*countValue)(nil)
	_ flag.Value = (*sizeValue)(nil)
	_ flag.Value = (*durationValue)(nil)
	_ flag.Value = (*levelValue)(nil)
	_ manyValue  = (*listValue)(nil)
	_ manyValue  = (*prefixesValue)(nil)
)

// manyValue is a setting that can be given more than once.
type manyValue interface {
	flag.Value
	many()
}

type stringValue string

func (v *stringValue) String() string     { return string(*v) }
func (v *stringValue) Set(s string) error { *v = stringValue(s); return nil }

// boolValue is true or false; a flag alone means true.
type boolValue bool

func (v *boolValue) IsBoolFlag() bool { return true }
func (v *boolValue) String() string   { return strconv.FormatBool(bool(*v)) }

func (v *boolValue) Set(s string) error {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return errors.New("it must be true or false")
	}
	*v = boolValue(b)
	return nil
}

// countValue is a whole number that is not negative.
type countValue int64

func (v *countValue) String() string { return strconv.FormatInt(int64(*v), 10) }

func (v *countValue) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return errors.New("it must be a whole number, 0 or more")
	}
	*v = countValue(n)
	return nil
}

// sizeValue is a number of bytes: 65536, 64KiB, 4MiB.
type sizeValue int64

var sizeUnits = []struct {
	suffix string
	bits   uint
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}

func (v *sizeValue) String() string {
	n := int64(*v)
	for i := len(sizeUnits) - 1; i >= 0; i-- {
		if u := sizeUnits[i]; n != 0 && n%(1<<u.bits) == 0 {
			return strconv.FormatInt(n>>u.bits, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

func (v *sizeValue) Set(s string) error {
	digits, bits := s, uint(0)
	for _, u := range sizeUnits {
		if d, ok := strings.CutSuffix(s, u.suffix); ok {
			digits, bits = d, u.bits
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n < 0 || n<<bits>>bits != n {
		return errors.New("it must be a number of bytes, such as 65536, 64KiB or 4MiB")
	}
	*v = sizeValue(n << bits)
	return nil
}

// durationValue is a time with its unit: 30s, 168h, 7d.
type durationValue time.Duration

func (v *durationValue) String() string {
	s := time.Duration(*v).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (v *durationValue) Set(s string) error {
	d, err := parseDuration(s)
	if err != nil || d < 0 {
		return errors.New("it must be a time with its unit, such as 500ms, 30s, 168h or 7d")
	}
	*v = durationValue(d)
	return nil
}

// parseDuration is time.ParseDuration with days, of 24 hours, in front.
func parseDuration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	const most = uint64(math.MaxInt64 / (24 * time.Hour))
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > most {
		return 0, errors.New("it is no number of days")
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || d > math.MaxInt64-more {
		return 0, errors.New("it is no time after a number of days")
	}
	return d + more, nil
}

type levelValue slog.Level

func (v *levelValue) String() string { return strings.ToLower(slog.Level(*v).String()) }

func (v *levelValue) Set(s string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	l, ok := levels[strings.ToLower(s)]
	if !ok {
		return errors.New("it must be debug, info, warn or error")
	}
	*v = levelValue(l)
	return nil
}

// listValue is a list; commas separate, and giving it again adds to it.
type listValue []string

func (v *listValue) many()          {}
func (v *listValue) String() string { return strings.Join(*v, ",") }

func (v *listValue) Set(s string) error {
	*v = append(*v, splitList(s)...)
	return nil
}

// prefixesValue is a list of networks; an address stands for itself alone.
type prefixesValue []netip.Prefix

func (v *prefixesValue) many() {}

func (v *prefixesValue) String() string {
	var s []string
	for _, p := range *v {
		s = append(s, p.String())
	}
	return strings.Join(s, ",")
}

func (v *prefixesValue) Set(s string) error {
	for _, one := range splitList(s) {
		p, err := parsePrefix(one)
		if err != nil {
			return err
		}
		*v = append(*v, p)
	}
	return nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), nil
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return a.Unmap().Prefix(a.Unmap().BitLen())
	}
	return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a CIDR such as 10.0.0.0/8", s)
}

func splitList(s string) []string {
	var list []string
	for one := range strings.SplitSeq(s, ",") {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}
