//go:build cdk

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// template is what CloudFormation would get. References are shown as text in the
// way of Fn::Sub, without the hash that the CDK puts behind names: ${Table.Arn}.
type template struct {
	text      string
	resources map[string]resource
	outputs   map[string]string
}

type resource struct {
	Type           string
	Properties     map[string]any
	DependsOn      any
	DeletionPolicy string

	UpdateReplacePolicy string
	Metadata            struct {
		Nag struct {
			Rules []suppression `json:"rules_to_suppress"`
		} `json:"cdk_nag"`
	}
}

// suppression is how cdk-nag notes one in the template.
type suppression struct {
	ID        string `json:"id"`
	Reason    string `json:"reason"`
	AppliesTo []any  `json:"applies_to"`
}

func parseTemplate(t *testing.T, b []byte) *template {
	t.Helper()
	var raw struct {
		Resources map[string]resource
		Outputs   map[string]struct{ Value any }
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		t.Fatal(err)
	}
	out := &template{text: string(b), resources: map[string]resource{}, outputs: map[string]string{}}
	for id, r := range raw.Resources {
		short := shortID(id)
		if _, twice := out.resources[short]; twice {
			short = id
		}
		out.resources[short] = r
	}
	for id, o := range raw.Outputs {
		out.outputs[id] = flat(o.Value)
	}
	return out
}

var hash = regexp.MustCompile(`[0-9A-F]{8}$`)

func shortID(id string) string { return hash.ReplaceAllString(id, "") }

// flat shows a value as text.
func flat(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case map[string]any:
		if ref, ok := v["Ref"].(string); ok {
			return "${" + shortID(ref) + "}"
		}
		if att, ok := v["Fn::GetAtt"].([]any); ok {
			return "${" + shortID(att[0].(string)) + "." + att[1].(string) + "}"
		}
		if sub, ok := v["Fn::Sub"].(string); ok {
			return sub
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			var parts []string
			for _, p := range join[1].([]any) {
				parts = append(parts, flat(p))
			}
			return strings.Join(parts, join[0].(string))
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// get finds a resource by its name without the hash, and its type.
func (tm *template) get(t *testing.T, id, kind string) resource {
	t.Helper()
	r, ok := tm.resources[id]
	if !ok || r.Type != kind {
		t.Fatalf("there is no %s %s among %v", kind, id, slices.Sorted(maps.Keys(tm.resources)))
	}
	return r
}

func (tm *template) ofType(kind string) map[string]resource {
	found := map[string]resource{}
	for id, r := range tm.resources {
		if r.Type == kind {
			found[id] = r
		}
	}
	return found
}

// at is a value inside the properties, as text: at("DefaultRouteSettings.ThrottlingRateLimit").
// A number is an index.
func (r resource) at(path string) string {
	return flat(r.value(path))
}

func (r resource) value(path string) any {
	var v any = r.Properties
	for _, step := range strings.Split(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// want compares values inside the properties.
func (r resource) want(t *testing.T, values map[string]string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(values)) {
		if got := r.at(path); got != values[path] {
			t.Errorf("%s is %q, want %q", path, got, values[path])
		}
	}
}

// list takes one value or many.
func list(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("%s: %s is too much", what, g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s: %s is missing", what, w)
		}
	}
}
