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

// Values are the settings of one reader: what somebody has set, and the defaults.
type Values struct {
	reader Readers
	spell  Spelling // where nobody has set anything
	given  map[*Setting]given
}

type given struct {
	value       any
	text, place string
}

// For makes the Values of a reader that nobody has told anything. Its own way to write names is spell.
func For(reader Readers, spell Spelling) Values {
	return Values{reader, spell, map[*Setting]given{}}
}

// Defaults are the Values of someone who says nothing.
func Defaults() Values { return For(Everybody, Line) }

// Of is the value of a setting. Whoever asks has to be among its declared readers.
func (k Key[T]) Of(v Values) T {
	if k.Readers&v.reader == 0 {
		panic("setting " + k.Name + " is not declared for who reads it")
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

// IsSet reports whether somebody has set it to anything.
func (v Values) IsSet(n Named) bool { return v.given[n.It()].text != "" }

// Lookup finds a setting of this reader. The error says what is the nearest.
func (v Values) Lookup(name string) (*Setting, error) { return v.lookup(name, Line) }

func (v Values) lookup(name string, spell Spelling) (*Setting, error) {
	var names []string
	for _, s := range All(v.reader) {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, Unknown("setting", name, names, spell)
}

// Unknown says that there is no such thing as name, and which of names is near.
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

// Set reads one value, which replaces an earlier one; no text takes back what has no default. The error says where it stands, which is file (if there is one) and
// its name as spell writes it.
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

// SetEnviron takes what belongs to us of an environment, as os.Environ lists it. A variable that is set to nothing counts
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

// Wrong complains of a setting that can be read and makes no sense: where it was set, its value, and what to do. Settings
// among args are named as this reader does.
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

// Told is what another program has to be told, by names: all that it reads and that was set here.
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
