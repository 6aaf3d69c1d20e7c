//go:build cdk

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The type of a value in metric math: a number, a series of values over time, an array of
// such series, a text.
type mathType string

const (
	scalar mathType = "a number"
	series mathType = "a series"
	array  mathType = "an array of series"
	text   mathType = "a text"
	word   mathType = "a word" // AVG, DESC, REPEAT and the like as arguments
)

// mathFunctions says what each function makes of what, as CloudWatch documents it; call
// handles IF and other special cases. Functions that the stack does not use are left out.
var mathFunctions = map[string][]struct {
	takes []mathType
	makes mathType
}{
	"ABS": pointwise, "CEIL": pointwise, "FLOOR": pointwise, "LOG": pointwise, "LOG10": pointwise, "RATE": pointwise, "DIFF": pointwise, "DIFF_TIME": pointwise, "RUNNING_SUM": pointwise,
	"AVG": aggregate, "MAX": aggregate, "MIN": aggregate, "STDDEV": aggregate, "SUM": aggregate, "DATAPOINT_COUNT": aggregate,
	"FILL": {
		{[]mathType{series, scalar}, series}, {[]mathType{series, word}, series}, {[]mathType{array, scalar}, array}, {[]mathType{array, series}, array}, {[]mathType{array, word}, array},
	},
	"IF": {
		{[]mathType{series, series}, series}, {[]mathType{series, scalar}, series}, {[]mathType{scalar, series}, series},
		{[]mathType{series, series, series}, series}, {[]mathType{series, scalar, series}, series}, {[]mathType{series, series, scalar}, series},
		{[]mathType{series, scalar, scalar}, series}, {[]mathType{scalar, series, series}, series},
	},
	"PERIOD": {{[]mathType{series}, scalar}}, "METRIC_COUNT": {{[]mathType{array}, scalar}}, "TIME_SERIES": {{[]mathType{scalar}, series}},
	"FIRST": {{[]mathType{array}, series}}, "LAST": {{[]mathType{array}, series}},
	"METRICS": {{nil, array}, {[]mathType{text}, array}},
}

type signatures = []struct {
	takes []mathType
	makes mathType
}

var (
	pointwise = signatures{{[]mathType{series}, series}, {[]mathType{array}, array}}
	aggregate = signatures{{[]mathType{series}, scalar}, {[]mathType{array}, series}}
)

var mathToken = regexp.MustCompile(`^\s*(?:([0-9]+(?:\.[0-9]+)?)|([A-Za-z_][A-Za-z0-9_]*)|("[^"]*"|'[^']*')|(==|!=|<=|>=|&&|\|\||[-+*/^<>()\[\],]))`)

// mathParser reads one expression and finds its type. ids are those that it may name.
type mathParser struct {
	rest  string
	token string
	ids   func(id string) (mathType, error)
}

// mathOf is the type of an expression.
func mathOf(expression string, ids func(string) (mathType, error)) (t mathType, err error) {
	p := &mathParser{rest: expression, ids: ids}
	defer func() {
		if v := recover(); v != nil {
			t, err = "", fmt.Errorf("%s: %v", expression, v)
		}
	}()
	p.next()
	t = p.binary(0)
	if p.token != "" {
		panic("unexpected " + p.token)
	}
	return t, nil
}

func (p *mathParser) next() {
	if p.rest = strings.TrimSpace(p.rest); p.rest == "" {
		p.token = ""
		return
	}
	m := mathToken.FindStringIndex(p.rest)
	if m == nil {
		panic("cannot be read: " + p.rest)
	}
	p.token, p.rest = strings.TrimSpace(p.rest[:m[1]]), p.rest[m[1]:]
}

func (p *mathParser) expect(token string) {
	if p.token != token {
		panic(fmt.Sprintf("%q where %q should be", p.token, token))
	}
	p.next()
}

// operators by how tightly they bind.
var operators = [][]string{{"||", "OR"}, {"&&", "AND"}, {"==", "!=", "<", ">", "<=", ">="}, {"+", "-"}, {"*", "/"}, {"^"}}

func (p *mathParser) binary(level int) mathType {
	if level == len(operators) {
		return p.unary()
	}
	left := p.binary(level + 1)
	for slices.Contains(operators[level], p.token) {
		operator := p.token
		p.next()
		left = combine(operator, level < 3, left, p.binary(level+1))
	}
	return left
}

// combine is the type of a value with an operator between two others. Comparisons and
// logic are for numbers and series only.
func combine(operator string, logic bool, a, b mathType) mathType {
	rank := []mathType{scalar, series, array}
	i, j := slices.Index(rank, a), slices.Index(rank, b)
	if i < 0 || j < 0 || i == 2 && j == 2 || logic && max(i, j) == 2 {
		panic(fmt.Sprintf("%s between %s and %s", operator, a, b))
	}
	return rank[max(i, j)]
}

func (p *mathParser) unary() mathType {
	if p.token == "-" {
		p.next()
		return combine("-", false, scalar, p.unary())
	}
	token := p.token
	p.next()
	switch {
	case token == "":
		panic("it ends too early")
	case token == "(":
		t := p.binary(0)
		p.expect(")")
		return t
	case token == "[":
		for i, t := range p.arguments("]") {
			if t != series && t != array {
				panic(fmt.Sprintf("element %d of an array is %s", i, t))
			}
		}
		return array
	case token[0] == '"' || token[0] == '\'':
		return text
	case token[0] >= '0' && token[0] <= '9':
		return scalar
	case token[0] >= 'a' && token[0] <= 'z':
		t, err := p.ids(token)
		if err != nil {
			panic(err)
		}
		return t
	case token[0] >= 'A' && token[0] <= 'Z' && p.token == "(":
		p.next()
		return p.call(token, p.arguments(")"))
	case slices.Contains([]string{"REPEAT", "LINEAR"}, token):
		return word
	}
	panic("unexpected " + token)
}

// arguments reads up to the closing token.
func (p *mathParser) arguments(end string) []mathType {
	var all []mathType
	for p.token != end {
		if len(all) > 0 {
			p.expect(",")
		}
		all = append(all, p.binary(0))
	}
	p.next()
	return all
}

func (p *mathParser) call(name string, arguments []mathType) mathType {
	known, ok := mathFunctions[name]
	if !ok {
		panic("there is no function " + name)
	}
	for _, s := range known {
		if slices.Equal(s.takes, arguments) {
			return s.makes
		}
	}
	panic(fmt.Sprintf("%s does not take %v", name, arguments))
}

// A mathItem is a metric of an alarm or a graph, or an expression if that is not "".
type mathItem struct{ id, expression string }

var mathID = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]*$`)

// checkMath finds what is wrong with all that is calculated together.
func checkMath(items []mathItem) map[string]error {
	byID, wrong := map[string]mathItem{}, map[string]error{}
	for _, it := range items {
		if it.id == "" {
			continue
		}
		if _, twice := byID[it.id]; twice || !mathID.MatchString(it.id) {
			wrong[it.id] = fmt.Errorf("the id %q is there twice, or is none", it.id)
		}
		byID[it.id] = it
	}
	var typeOf func(id string, within []string) (mathType, error)
	typeOf = func(id string, within []string) (mathType, error) {
		it, ok := byID[id]
		switch {
		case !ok:
			return "", fmt.Errorf("there is no %s", id)
		case it.expression == "":
			return series, nil
		case slices.Contains(within, id):
			return "", fmt.Errorf("%s depends on itself", id)
		}
		return mathOf(it.expression, func(other string) (mathType, error) { return typeOf(other, append(within, id)) })
	}
	for _, it := range items {
		if it.expression == "" {
			continue
		}
		t, err := mathOf(it.expression, func(id string) (mathType, error) { return typeOf(id, []string{it.id}) })
		if err == nil && t != series && t != array {
			err = fmt.Errorf("%s is %s in the end", it.expression, t)
		}
		if err != nil {
			wrong[it.id+" "+it.expression] = err
		}
	}
	return wrong
}

// alarmItems are those of an alarm: exactly one of them is what the alarm looks at.
func alarmItems(t *testing.T, id string, alarm resource) []mathItem {
	t.Helper()
	var items []mathItem
	looked := 0
	for _, m := range list(alarm.value("Metrics")) {
		if m == nil {
			continue
		}
		it := resource{Properties: m.(map[string]any)}
		items = append(items, mathItem{it.at("Id"), it.at("Expression")})
		if (it.at("Expression") == "") == (it.value("MetricStat") == nil) {
			t.Errorf("%s: %s has to be either a metric or an expression", id, it.at("Id"))
		}
		if it.at("ReturnData") != "false" {
			looked++
			if et, err := mathOf(it.at("Expression"), func(string) (mathType, error) { return series, nil }); it.at("Expression") != "" && (err != nil || et != series) {
				t.Errorf("%s looks at %s (%v), and not at one series", id, et, err)
			}
		}
		// They act differently in an alarm, which asks for more values than it looks at.
		if aggregateOfOne.MatchString(it.at("Expression")) {
			t.Errorf("%s: %s is not for alarms", id, it.at("Expression"))
		}
	}
	if items != nil && looked != 1 {
		t.Errorf("%s looks at %d of its metrics, want 1", id, looked)
	}
	return items
}

var aggregateOfOne = regexp.MustCompile(`\b(AVG|MAX|MIN|STDDEV|SUM|DATAPOINT_COUNT|RUNNING_SUM|REMOVE_EMPTY)\((\w+)\)`)

// graphs are what the widgets of a dashboard calculate, each for itself.
func graphs(t *testing.T, dashboard resource) [][]mathItem {
	t.Helper()
	var body struct {
		Widgets []struct {
			Properties struct{ Metrics [][]any }
		}
	}
	if err := json.Unmarshal([]byte(dashboard.at("DashboardBody")), &body); err != nil {
		t.Fatalf("the dashboard is no JSON: %v", err)
	}
	var all [][]mathItem
	for _, w := range body.Widgets {
		var items []mathItem
		for _, m := range w.Properties.Metrics {
			options, _ := m[len(m)-1].(map[string]any)
			it := resource{Properties: options}
			items = append(items, mathItem{it.at("id"), it.at("expression")})
			if (it.at("expression") == "") != (len(m) > 1) {
				t.Errorf("%v has to be either a metric or an expression", m)
			}
		}
		all = append(all, items)
	}
	return all
}

func TestMetricMath(t *testing.T) {
	expressions := 0
	for name, context := range fronts {
		tm := synth(t, name, context).template
		sets := map[string][]mathItem{}
		for id, a := range tm.ofType("AWS::CloudWatch::Alarm") {
			sets[id] = alarmItems(t, id, a)
		}
		for id, d := range tm.ofType("AWS::CloudWatch::Dashboard") {
			for i, items := range graphs(t, d) {
				sets[fmt.Sprint(id, " ", i)] = items
			}
		}
		for where, items := range sets {
			for what, err := range checkMath(items) {
				t.Errorf("%s: %s: %s: %v", name, where, what, err)
			}
			for _, it := range items {
				if it.expression != "" {
					expressions++
				}
			}
		}
	}
	if expressions == 0 {
		t.Error("no expression was looked at")
	}
}

func TestMathThatCloudWatchRefuses(t *testing.T) {
	metrics := []mathItem{{"a", ""}, {"b", ""}, {"both", "[a, b]"}}
	for _, good := range []string{
		"a", "a - b", "-a * 2 ^ 2", "FILL(a, 0) + IF(a > b, a - b, 0)", "SUM([a, b])", "MAX([a, b * 2])", "a - AVG(a)", "SUM(METRICS())", `SUM(METRICS("a"))`, "100 / both", "FILL(METRICS(), REPEAT)",
		"IF(a >= 30 AND (b < 2 || a != b), 1, 0)", "SUM(100/[a, b])", "a / PERIOD(a)", "TIME_SERIES(MAX(a))", "IF(a, b)", "MAX(both)",
	} {
		if wrong := checkMath(append(metrics, mathItem{"e", good})); len(wrong) != 0 {
			t.Errorf("%s: %v", good, wrong)
		}
	}
	for _, bad := range []string{
		"MAX([a - b, 0])", "FILL(a, 0) + MAX([FILL(a, 0) - FILL(b, 0), 0])", "MIN([1, a])", "SUM([AVG(a), b])", "AVG(a)", "7", "MAX(a)", "a > both", "both + both", "a + c", "e + a", "max([a])", "NONE(a)",
		"IF(a > b)", "IF(both, 1, 0)", "FILL(a)", "FILL(0, a)", "a +", "(a", "a b", "[a, b", "SUM(a, b)", "a $ b", `"a"`, "PERIOD([a, b])",
	} {
		if wrong := checkMath(append(metrics, mathItem{"e", bad})); len(wrong) == 0 {
			t.Errorf("%s was taken", bad)
		}
	}
	for name, items := range map[string][]mathItem{
		"twice":    {{"a", ""}, {"a", ""}},
		"no id":    {{"A", ""}},
		"a circle": {{"x", "y"}, {"y", "x"}},
		"far away": {{"a", ""}, {"x", "MAX([y, 0])"}, {"y", "a"}},
	} {
		if len(checkMath(items)) == 0 {
			t.Errorf("%s was taken", name)
		}
	}
}
