// Package settings declares every setting of Blindpost once: its name, how it is written, default, bounds, meaning, who
// reads it, and whether a reload changes it. What reads settings (`blindpost serve`, the functions, the CDK app), what
// lists them (the help, docs/settings.md) and what passes them on (the environment of a function) goes by this declaration.
//
// A setting has one name everywhere: --mailbox-cap is BLINDPOST_MAILBOX_CAP in an environment, mailbox-cap in a settings
// file and blindpost:mailbox-cap in the context of the CDK. None is a secret; some say where one is.
package settings

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Readers are programs that read a setting.
type Readers uint8

// The readers. All functions know what any of them reads, so that one environment can be given to each; the stack tells
// each only what it uses itself.
const (
	Binary     Readers = 1 << iota // blindpost serve
	Connect                        // functions/connect
	Message                        // functions/message
	Disconnect                     // functions/disconnect
	Sweeper                        // functions/sweeper
	Stack                          // the CDK app

	Handlers   = Connect | Message | Sweeper // what handles frames and jobs
	Functions  = Handlers | Disconnect
	AllReaders = Binary | Functions | Stack
)

// String lists the readers.
func (r Readers) String() string {
	var names []string
	for _, n := range []struct {
		r    Readers
		name string
	}{
		{Binary, "binary"}, {Functions, "functions"}, {Connect, "connect"}, {Message, "message"},
		{Disconnect, "disconnect"}, {Sweeper, "sweeper"}, {Stack, "stack"},
	} {
		if r&n.r == n.r {
			names = append(names, n.name)
			r &^= n.r
		}
	}
	return strings.Join(names, ", ")
}

// Setting is one setting.
type Setting struct {
	Name, Default, Help string
	Unit                string // how a value is called in the help
	Want                string // what a value must be, as in "it must be ..."
	Min, Max            string // "" is no bound
	Group               *Group
	Readers             Readers
	Reload              bool // SIGHUP changes it in the binary
	Secret              bool // it says where a secret is, and may by mistake be the secret: no error quotes it
	List                bool // it can be given several times
	Switch              bool // the flag alone is true

	read func(text string) (value any, ok bool)
}

// Group is what stands together in the help and in docs/settings.md.
type Group struct {
	Title  string
	More   bool // only in `serve --help-all`
	reader Readers
	reload bool
}

// Key is a setting whose values are of type T.
type Key[T any] struct{ *Setting }

// Named is a setting, of whatever type.
type Named interface{ It() *Setting }

// It is the setting itself.
func (s *Setting) It() *Setting { return s }

// all are the settings in the order of their declaration.
var all []*Setting

// All lists the settings that any of readers reads, by groups.
func All(readers Readers) []*Setting {
	list := slices.DeleteFunc(slices.Clone(all), func(s *Setting) bool { return s.Readers&readers == 0 })
	slices.SortStableFunc(list, func(a, b *Setting) int { return slices.Index(groups, a.Group) - slices.Index(groups, b.Group) })
	return list
}

type option func(*Setting)

// within bounds a number, a size or a time; both bounds are written as values are.
func within(least, most string) option { return func(s *Setting) { s.Min, s.Max = least, most } }

// readBy names the readers, where they are not those of the group.
func readBy(r Readers) option { return func(s *Setting) { s.Readers = r } }

func secret(s *Setting) { s.Secret = true }
func once(s *Setting)   { s.Reload = false }

// declare makes a setting. Without a default its value is zero until it is set.
func declare[T any](g *Group, k kind[T], name, def, help string, options ...option) Key[T] {
	s := &Setting{
		Name: name, Default: def, Help: help, Unit: k.unit, Want: k.want, Group: g, Readers: g.reader, Reload: g.reload, List: k.list,
		read: func(text string) (any, bool) { return k.read(text) },
	}
	var value any = *new(T)
	_, s.Switch = value.(bool)
	for _, o := range options {
		o(s)
	}
	all = append(all, s)
	return Key[T]{s}
}

// Value reads a value from its written form. The error says what it must be.
func (s *Setting) Value(text string) (any, error) {
	v, ok := s.read(text)
	if !ok {
		if s.Max != "" { // the number may be one that no program can hold
			return nil, fmt.Errorf("it must be %s, from %s to %s", s.Want, s.Min, s.Max)
		}
		return nil, fmt.Errorf("it must be %s", s.Want)
	}
	if s.outside(v) {
		return nil, fmt.Errorf("it must be from %s to %s", s.Min, s.Max)
	}
	return v, nil
}

func (s *Setting) outside(v any) bool {
	if s.Max == "" {
		return false
	}
	least, _ := s.read(s.Min)
	most, _ := s.read(s.Max)
	return number(v) < number(least) || number(v) > number(most)
}

func number(v any) int64 {
	if d, ok := v.(time.Duration); ok {
		return int64(d)
	}
	return v.(int64)
}

// Spelling is how a place writes the name of a setting.
type Spelling func(name string) string

// Flag is how flags are written.
func Flag(name string) string { return "--" + name }

// Variable is how environment variables are written.
func Variable(name string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Line is how names stand in a settings file.
func Line(name string) string { return name }

// Prefix begins the names of our environment variables.
const Prefix = "BLINDPOST_"

// Variable is the environment variable of the setting.
func (s *Setting) Variable() string { return Variable(s.Name) }
