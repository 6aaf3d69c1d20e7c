package settings

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Values are the settings of one reader: what was set, and the defaults.
type Values struct {
	reader Readers
	spell  Spelling // of settings that were not set
	given  map[*Setting]given
}

type given struct {
	value       any
	text, place string
}

// For makes the Values of a reader, with nothing set. spell is how this reader writes names.
func For(reader Readers, spell Spelling) Values {
	return Values{reader, spell, map[*Setting]given{}}
}

// Defaults are Values with nothing set.
func Defaults() Values { return For(AllReaders, Line) }

// Of is the value of a setting. It panics if v is of a reader that is not declared for the setting.
func (k Key[T]) Of(v Values) T {
	if k.Readers&v.reader == 0 {
		panic("setting " + k.Name + " is not declared for this reader")
	}
	value, ok := v.value(k.Setting).(T)
	if !ok {
		return *new(T)
	}
	return value
}

func (v Values) value(s *Setting) any {
	if g, ok := v.given[s]; ok {
		return g.value
	}
	if s.Default == "" {
		return nil
	}
	value, _ := s.read(s.Default)
	return value
}

// IsSet reports whether the setting was set to a text that is not empty.
func (v Values) IsSet(n Named) bool { return v.given[n.It()].text != "" }

// Lookup finds a setting of this reader. The error says who else reads it, or names the nearest one.
func (v Values) Lookup(name string) (*Setting, error) { return v.lookup(name, Line) }

func (v Values) lookup(name string, spell Spelling) (*Setting, error) {
	var names []string
	for _, s := range all {
		switch ours := s.Readers&v.reader != 0; {
		case ours && s.Name == name:
			return s, nil
		case s.Name == name:
			return nil, fmt.Errorf("it means nothing here: it is read by %s", s.Readers)
		case ours:
			names = append(names, s.Name)
		}
	}
	return nil, Unknown("setting", name, names, spell)
}

// Unknown is the error about an unknown name. It names the nearest of names.
func Unknown(thing, name string, names []string, spell Spelling) error {
	nearest, least := "", len(name)/3+2
	for _, known := range names {
		if d := levenshtein.ComputeDistance(name, known); d < least {
			nearest, least = known, d
		}
	}
	if nearest == "" {
		return errors.New("there is no such " + thing)
	}
	return fmt.Errorf("there is no such %s; the nearest is %s", thing, spell(nearest))
}

// Set reads one value, which replaces an earlier one; an empty text resets a setting without a default. The error begins with
// the place: file, if it is not empty, and the name as spell writes it.
func (v Values) Set(file string, spell Spelling, name, text string) error {
	place := file + spell(name)
	s, err := v.lookup(name, spell)
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	if text == "" && s.Default == "" {
		v.given[s] = given{place: place}
		return nil
	}
	value, err := s.Value(text)
	g := given{value, text, place}
	if err != nil {
		return fmt.Errorf("%s: %w", g.quote(s), err)
	}
	v.given[s] = g
	return nil
}

func (g given) quote(s *Setting) string {
	if s.Secret {
		return g.place
	}
	return fmt.Sprintf("%s %q", g.place, g.text)
}

// SetEnviron sets what our variables in an environment say, as os.Environ lists it. A variable that is set to nothing counts
// as not set.
func (v Values) SetEnviron(environ []string) error {
	var errs []error
	for _, kv := range environ {
		variable, text, _ := strings.Cut(kv, "=")
		short, ours := strings.CutPrefix(variable, Prefix)
		if !ours {
			continue
		}
		name := strings.ToLower(strings.ReplaceAll(short, "_", "-"))
		var err error
		if text != "" {
			err = v.Set("", Variable, name, text)
		} else if _, err = v.lookup(name, Variable); err != nil {
			err = fmt.Errorf("%s: %w", variable, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Wrong is the error about a setting that can be read but does not fit: where it was set, its value, and what to do.
// Settings among args are named as this reader writes them.
func (v Values) Wrong(n Named, format string, args ...any) error {
	for i, a := range args {
		if n, ok := a.(Named); ok {
			args[i] = v.spell(n.It().Name)
		}
	}
	place := v.spell(n.It().Name)
	if g, ok := v.given[n.It()]; ok {
		place = g.quote(n.It())
	}
	return fmt.Errorf(place+": "+format, args...)
}

// Told are the settings that were set here and that reader reads, by their names: what a program must pass on to it.
func (v Values) Told(reader Readers) map[string]string {
	told := map[string]string{}
	for s, g := range v.given {
		if s.Readers&reader != 0 && g.text != "" {
			told[s.Name] = g.text
		}
	}
	return told
}

// Under are these values where above has none.
func (v Values) Under(above Values) Values {
	both := Values{v.reader, v.spell, maps.Clone(v.given)}
	maps.Copy(both.given, above.given)
	return both
}

// Reloaded are these values with those of fresh where a reload changes something.
func (v Values) Reloaded(fresh Values) Values {
	next := fresh.Under(Values{})
	for _, s := range all {
		if s.Reload {
			continue
		}
		delete(next.given, s)
		if g, ok := v.given[s]; ok {
			next.given[s] = g
		}
	}
	return next
}

// Differences names the settings whose values are not the same.
func (v Values) Differences(other Values) []string {
	var names []string
	for _, s := range all {
		if !reflect.DeepEqual(v.value(s), other.value(s)) {
			names = append(names, s.Name)
		}
	}
	return slices.Sorted(slices.Values(names))
}
