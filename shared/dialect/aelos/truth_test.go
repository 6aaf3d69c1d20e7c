package aelos

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// view is what a boat believes, from all that it has been told.
type view struct {
	tags    []string
	count   int
	frames  int
	welcome int
}

// believe applies what a boat has got. Strict says that nothing came twice.
func believe(t *testing.T, got []string, strict bool) (v view) {
	t.Helper()
	v.count = -1
	for _, text := range got {
		if strings.HasPrefix(text, `{"t":"welcome"`) {
			v.welcome++
			continue
		}
		var f viewersFrame
		if err := json.Unmarshal([]byte(text), &f); err != nil || f.T != typeViewers {
			t.Fatalf("boat has got %s", text)
		}
		if v.welcome == 0 {
			t.Error("viewers comes before welcome")
		}
		for _, a := range f.Attach {
			if !slices.Contains(v.tags, a) {
				v.tags = append(v.tags, a)
			} else if strict {
				t.Errorf("%s attaches twice", a)
			}
		}
		for _, d := range f.Detach {
			i := slices.Index(v.tags, d)
			if i >= 0 {
				v.tags = slices.Delete(v.tags, i, i+1)
			} else if strict {
				t.Errorf("%s detaches and was not there", d)
			}
		}
		v.count = f.Count
		v.frames++
		if strict && f.Count != len(v.tags) {
			t.Errorf("count is %d, the deltas say %d", f.Count, len(v.tags))
		}
	}
	slices.Sort(v.tags)
	return v
}

// wantTruth compares what the boat believes with the roster.
func (w *world) wantTruth(v view) {
	w.t.Helper()
	var tags []string
	r := w.roster("org", "boat")
	for _, one := range r.Viewers {
		tags = append(tags, one.Tag.String())
	}
	slices.Sort(tags)
	if !slices.Equal(v.tags, tags) || v.count != len(tags) {
		w.t.Errorf("the boat believes in %d viewers, %v; the truth is %v", v.count, v.tags, tags)
	}
	if !r.empty() && (!r.settled(time.Now()) || r.Lease != nil) {
		w.t.Errorf("roster is not settled: %+v", r)
	}
}
