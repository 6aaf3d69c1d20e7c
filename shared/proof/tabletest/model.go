package tabletest

import (
	"errors"
	"sort"
	"strconv"
	"strings"
	"time"

	"blindpost/shared/table"
)

// model is a table that is obviously right and shares no code with the real
// ones. Values are kept in the form of describeValue, which differs when the
// values do.
type model struct {
	items map[table.Key]modelItem
}

type modelItem struct {
	attrs   map[string]string
	expires int64 // Unix seconds, 0 never
}

func newModel() *model { return &model{items: map[table.Key]modelItem{}} }

// get returns the item if it is there at that moment.
func (m *model) get(k table.Key, now time.Time) (modelItem, bool) {
	it, ok := m.items[k]
	if !ok || (it.expires != 0 && now.UnixNano() >= it.expires*1_000_000_000) {
		return modelItem{}, false
	}
	return it, true
}

// outcome is what an operation would do.
type outcome struct {
	write  bool
	exists bool
	item   modelItem
	err    error // table.ErrCondition or table.ErrInvalid
}

func (m *model) try(op table.Op, now time.Time) outcome {
	it, exists := m.get(op.Key, now)
	for _, c := range op.Conds {
		if !modelHolds(c, it, exists) {
			return outcome{err: table.ErrCondition}
		}
	}
	next := modelItem{attrs: map[string]string{}}
	switch op.Action {
	case table.Check:
		return outcome{}
	case table.Delete:
		return outcome{write: true}
	case table.Update:
		for name, v := range it.attrs {
			next.attrs[name] = v
		}
		next.expires = it.expires
		if op.KeepForever {
			next.expires = 0
		}
	}
	for name, v := range op.Set {
		next.attrs[name] = describeValue(v)
	}
	for name, delta := range op.Add {
		before, ok := next.attrs[name]
		if !ok {
			before = "n0"
		}
		n, isNumber := modelNumber(before)
		if !isNumber {
			return outcome{err: table.ErrInvalid}
		}
		next.attrs[name] = "n" + strconv.FormatInt(n+delta, 10)
	}
	for _, name := range op.Remove {
		delete(next.attrs, name)
	}
	if !op.Expires.IsZero() {
		next.expires = (op.Expires.UnixNano() + 999_999_999) / 1_000_000_000
	}
	return outcome{write: true, exists: true, item: next}
}

func (m *model) do(k table.Key, o outcome) {
	switch {
	case o.write && o.exists:
		m.items[k] = o.item
	case o.write:
		delete(m.items, k)
	}
}

func modelHolds(c table.Cond, it modelItem, exists bool) bool {
	v, present := it.attrs[c.Attr]
	n, isNumber := modelNumber(v)
	switch c.Test {
	case table.Exists:
		return exists
	case table.Absent:
		return !exists
	case table.AttrAbsent:
		return !present
	case table.Equal:
		return present && v == describeValue(c.Value)
	case table.Less:
		return isNumber && n < c.Value.Num()
	case table.AtMost:
		return isNumber && n <= c.Value.Num()
	}
	panic("unknown test")
}

func modelNumber(v string) (int64, bool) {
	digits, ok := strings.CutPrefix(v, "n")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// query returns the sort keys of all matching items in order, without a limit.
func (m *model) query(q table.Query, now time.Time) []string {
	found := []string{}
	for k := range m.items {
		if _, ok := m.get(k, now); !ok || k.Partition != q.Partition || !strings.HasPrefix(k.Sort, q.Prefix) {
			continue
		}
		if (q.After != "" && k.Sort <= q.After) || (q.Before != "" && k.Sort >= q.Before) {
			continue
		}
		found = append(found, k.Sort)
	}
	sort.Strings(found)
	return found
}

// differs compares an item with that of the model; "" means they are the same.
func (m *model) differs(got table.Item, k table.Key, want modelItem) string {
	same := got.Key == k && got.Attrs != nil && len(got.Attrs) == len(want.attrs)
	for name, v := range got.Attrs {
		same = same && describeValue(v) == want.attrs[name]
	}
	if want.expires == 0 {
		same = same && got.Expires.IsZero()
	} else {
		same = same && got.Expires.Equal(time.Unix(want.expires, 0))
	}
	if same {
		return ""
	}
	return "got " + describe(got) + ", want " + describeModel(k, want)
}

func describeModel(k table.Key, it modelItem) string {
	parts := []string{}
	for name, v := range it.attrs {
		parts = append(parts, strconv.Quote(name)+":"+v)
	}
	sort.Strings(parts)
	return strconv.Quote(k.Partition) + "/" + strconv.Quote(k.Sort) + " {" + strings.Join(parts, " ") + "} until " + strconv.FormatInt(it.expires, 10)
}

// acceptable says whether an error is right for operations with these outcomes.
// When several operations fail for different reasons, either may be told.
func acceptable(err error, outcomes []outcome) bool {
	firstCondition, anyError := -1, false
	for i, o := range outcomes {
		if o.err == table.ErrCondition && firstCondition < 0 {
			firstCondition = i
		}
		if o.err != nil {
			anyError = true
			if o.err == table.ErrInvalid && errors.Is(err, table.ErrInvalid) {
				return true
			}
		}
	}
	if !anyError {
		return err == nil
	}
	var condition *table.ConditionError
	return errors.As(err, &condition) && errors.Is(err, table.ErrCondition) && condition.Op == firstCondition
}
