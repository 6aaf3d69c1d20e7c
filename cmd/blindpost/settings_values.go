package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"blindpost/shared/settings/forms"
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

// read sets a value from its written form; an error leaves it as it is.
func read[T any](v *T, form func(string) (T, error), s string) error {
	got, err := form(s)
	if err != nil {
		return err
	}
	*v = got
	return nil
}

// countValue is a whole number that is not negative.
type countValue int64

func (v *countValue) String() string { return strconv.FormatInt(int64(*v), 10) }

func (v *countValue) Set(s string) error { return read((*int64)(v), forms.Count, s) }

// sizeValue is a number of bytes: 65536, 64KiB, 4MiB.
type sizeValue int64

func (v *sizeValue) String() string { return forms.FormatSize(int64(*v)) }

func (v *sizeValue) Set(s string) error { return read((*int64)(v), forms.Size, s) }

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

func (v *durationValue) Set(s string) error { return read((*time.Duration)(v), forms.Duration, s) }

type levelValue slog.Level

func (v *levelValue) String() string { return strings.ToLower(slog.Level(*v).String()) }

func (v *levelValue) Set(s string) error { return read((*slog.Level)(v), forms.Level, s) }

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
