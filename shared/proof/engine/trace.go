package engine

import (
	"fmt"
	"sort"
	"strings"

	"blindpost/shared/table"
)

// trace is what happened, for a person. It is only written when a schedule that has
// failed runs again.
type trace struct{ lines []string }

func (e *Engine) tracef(format string, args ...any) {
	if e.trace == nil {
		return
	}
	line := fmt.Sprintf(format, args...)
	e.trace.lines = append(e.trace.lines, fmt.Sprintf("%4d %s  %s", e.Step, e.Now().Format("02 15:04:05"), line))
}

// Trace adds a line to the trace.
func (e *Engine) Trace(format string, args ...any) { e.tracef(format, args...) }

func (e *Engine) traceOp(w *waiting, v verdict, err error) {
	if e.trace == nil {
		return
	}
	result := v.String()
	if err != nil {
		result = err.Error()
	}
	e.tracef("    %v: %s -> %s", w.task, e.describeOp(&w.op), result)
}

func (e *Engine) describeData(data []byte, text bool) string {
	if e.trace == nil {
		return ""
	}
	return e.world.Describe(data, text)
}

func (e *Engine) describeOp(o *op) string {
	if e.trace == nil {
		return ""
	}
	switch o.kind {
	case opWrite:
		parts := make([]string, len(o.ops))
		for i := range o.ops {
			parts[i] = describeWrite(&o.ops[i])
		}
		return o.name + " " + strings.Join(parts, "; ")
	case opRead:
		return o.name + " " + o.key.Partition + " " + o.key.Sort
	case opPost:
		return fmt.Sprintf("post to %s %s", e.connName(o), e.describeData(o.msg.Data, o.msg.Text))
	case opClose:
		return fmt.Sprintf("close %s (%s)", e.connName(o), o.note)
	case opStat:
		return "stat " + e.connName(o)
	}
	return o.name + " " + o.note
}

func (e *Engine) connName(o *op) string {
	if k := e.socks[o.conn]; k != nil {
		return k.String()
	}
	return string(o.conn)
}

func describeWrite(o *table.Op) string {
	var b strings.Builder
	b.WriteString([...]string{"", "put", "update", "delete", "check"}[o.Action])
	fmt.Fprintf(&b, " %s %s", o.Key.Partition, o.Key.Sort)
	var parts []string
	for name, v := range o.Set {
		parts = append(parts, name+"="+describeValue(v))
	}
	for name, n := range o.Add {
		parts = append(parts, fmt.Sprintf("%s%+d", name, n))
	}
	for _, name := range o.Remove {
		parts = append(parts, "-"+name)
	}
	sort.Strings(parts)
	if len(parts) > 0 {
		fmt.Fprintf(&b, " {%s}", strings.Join(parts, " "))
	}
	for i, c := range o.Conds {
		b.WriteString([...]string{" if", " and"}[min(i, 1)])
		switch c.Test {
		case table.Exists:
			b.WriteString(" exists")
		case table.Absent:
			b.WriteString(" absent")
		case table.AttrAbsent:
			fmt.Fprintf(&b, " no %s", c.Attr)
		case table.Equal:
			fmt.Fprintf(&b, " %s=%s", c.Attr, describeValue(c.Value))
		default:
			fmt.Fprintf(&b, " %s<%s", c.Attr, describeValue(c.Value))
		}
	}
	return b.String()
}

func describeValue(v table.Value) string {
	switch v.Kind() {
	case table.KindString:
		return v.Str()
	case table.KindNumber:
		return fmt.Sprint(v.Num())
	case table.KindBytes:
		if raw := v.Raw(); len(raw) <= 300 && printable(raw) {
			return string(raw)
		}
		return fmt.Sprintf("%d bytes", len(v.Raw()))
	}
	return "?"
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
