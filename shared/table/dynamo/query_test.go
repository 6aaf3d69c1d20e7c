package dynamo

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"blindpost/shared/table"
	"blindpost/shared/table/dynamo/layout"
)

func TestKeyConditions(t *testing.T) {
	long := strings.Repeat("k", table.MaxKey)
	for _, c := range []struct {
		name string
		q    table.Query
		want string // "" for no request at all
	}{
		{"all", table.Query{}, `pk = "p"`},
		{"prefix", table.Query{Prefix: "m/"}, `pk = "p" AND begins_with(sk, "m/")`},
		{"after", table.Query{After: "b"}, `pk = "p" AND sk > "b"`},
		{"before", table.Query{Before: "b"}, `pk = "p" AND sk < "b"`},
		{"between", table.Query{After: "a", Before: "b"}, `pk = "p" AND sk BETWEEN "a " AND "b"`},
		{"prefix, after in it", table.Query{Prefix: "m/", After: "m/3"}, `pk = "p" AND sk BETWEEN "m/3 " AND "m0"`},
		{"prefix, after is the prefix", table.Query{Prefix: "m/", After: "m/"}, `pk = "p" AND sk BETWEEN "m/ " AND "m0"`},
		{"prefix, after in front of it", table.Query{Prefix: "m/", After: "k"}, `pk = "p" AND begins_with(sk, "m/")`},
		{"prefix, after behind it", table.Query{Prefix: "m/", After: "m0"}, ""},
		{"prefix, before in it", table.Query{Prefix: "m/", Before: "m/3"}, `pk = "p" AND sk BETWEEN "m/" AND "m/3"`},
		{"prefix, before is the prefix", table.Query{Prefix: "m/", Before: "m/"}, ""},
		{"prefix, before behind it", table.Query{Prefix: "m/", Before: "z"}, `pk = "p" AND begins_with(sk, "m/")`},
		{"prefix, before just behind it", table.Query{Prefix: "m/", Before: "m0"}, `pk = "p" AND begins_with(sk, "m/")`},
		{"prefix and both", table.Query{Prefix: "m/", After: "m/1", Before: "m/3"}, `pk = "p" AND sk BETWEEN "m/1 " AND "m/3"`},
		{"nothing between", table.Query{After: "b", Before: "b"}, ""},
		{"nothing but control characters between", table.Query{After: "b", Before: "b\x01"}, ""},
		{"largest character", table.Query{Prefix: "a\U0010ffff", After: "a\U0010ffffb"}, `pk = "p" AND sk BETWEEN "a` + "\U0010ffff" + `b " AND "b"`},
		{"nothing but largest characters", table.Query{Prefix: "\U0010ffff", After: "\U0010ffffb"}, `pk = "p" AND sk > "` + "\U0010ffff" + `b"`},
		{"around the surrogates", table.Query{Prefix: "\ud7ff", After: "\ud7ffa"}, `pk = "p" AND sk BETWEEN "` + "\ud7ffa " + `" AND "` + "\ue000" + `"`},
		{"after the longest key", table.Query{After: long, Before: "l"}, `pk = "p" AND sk BETWEEN "` + long + `" AND "l"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.q.Partition = "p"
			tbl, s := scripted(t, answer{})
			page, err := tbl.Query(t.Context(), c.q)
			if err != nil || page.Items == nil || len(page.Items) != 0 || page.More || page.Next != "" {
				t.Fatalf("page %+v, %v", page, err)
			}
			if c.want == "" {
				wantCalls(t, s, "")
				return
			}
			in := s.calls[0].in.(*dynamodb.QueryInput)
			if got := spell(t, in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.KeyConditionExpression); got != c.want {
				t.Errorf("asks for\n  %s, want\n  %s", got, c.want)
			}
		})
	}
}

// selects says whether DynamoDB would read a sort key for a condition.
func selects(t *rapid.T, in *dynamodb.QueryInput, sort string) bool {
	values := in.ExpressionAttributeValues
	str := func(p string) string { return values[p].(*types.AttributeValueMemberS).Value }
	_, condition, some := strings.Cut(*in.KeyConditionExpression, " AND ")
	if !some {
		return true
	}
	words := strings.Fields(strings.NewReplacer("(", " ", ")", " ", ",", " ").Replace(condition))
	switch {
	case words[0] == "begins_with":
		return strings.HasPrefix(sort, str(words[2]))
	case words[1] == ">":
		return sort > str(words[2])
	case words[1] == "<":
		return sort < str(words[2])
	case words[1] == "BETWEEN":
		low, high := str(words[2]), str(words[4])
		if low > high {
			t.Fatalf("BETWEEN %q AND %q, which AWS refuses", low, high)
		}
		return sort >= low && sort <= high
	}
	t.Fatalf("condition %q", condition)
	return false
}

// boundParts make keys and bounds that are near each other.
var boundParts = []string{"", "a", "b", " ", "/", "~", "0", "é", "\ud7ff", "\ue000", "\ufffd", "\U0010ffff", "\U0010fffe"}

func TestQueriesReadWhatTheyShouldAndHardlyMore(t *testing.T) {
	part := rapid.SampledFrom(boundParts)
	bound := rapid.Map(rapid.SliceOfN(part, 0, 3), func(parts []string) string { return strings.Join(parts, "") })
	wild := rapid.OneOf(bound, bound, rapid.Map(bound, func(s string) string { return s + "\x01" }))
	rapid.Check(t, func(rt *rapid.T) {
		sorts := rapid.SliceOfNDistinct(bound.Filter(func(s string) bool { return s != "" }), 0, 30, rapid.ID).Draw(rt, "keys")
		slices.Sort(sorts)
		q := table.Query{Partition: "p", Prefix: bound.Draw(rt, "prefix"), After: wild.Draw(rt, "after"), Before: wild.Draw(rt, "before")}
		var want, got []string
		for _, sort := range sorts {
			if strings.HasPrefix(sort, q.Prefix) && sort > q.After && (q.Before == "" || sort < q.Before) {
				want = append(want, sort)
			}
		}

		tbl, s := scripted(t, answer{})
		if _, err := tbl.Query(t.Context(), q); err != nil {
			rt.Fatal(err)
		}
		if len(s.calls) == 0 {
			if len(want) > 0 {
				rt.Fatalf("no request, but there is %q", want)
			}
			return
		}
		read := &dynamodb.QueryOutput{}
		for _, sort := range sorts {
			if selects(rt, s.calls[0].in.(*dynamodb.QueryInput), sort) {
				read.Items = append(read.Items, stored(sort, nil, time.Time{}))
			}
		}
		if len(read.Items) > len(want)+1 {
			rt.Fatalf("reads %d items for %d", len(read.Items), len(want))
		}
		s.answers[0].out = read
		page, err := tbl.Query(t.Context(), q)
		if err != nil {
			rt.Fatal(err)
		}
		for _, it := range page.Items {
			got = append(got, it.Key.Sort)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("found %q, want %q", got, want)
		}
	})
}

func TestFollowing(t *testing.T) {
	strange := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(boundParts), 0, 4), func(parts []string) string { return strings.Join(parts, "") })
	rapid.Check(t, func(t *rapid.T) {
		fill := rapid.SampledFrom([]int{0, 0, table.MaxKey - 4, table.MaxKey - 2, table.MaxKey - 1}).Draw(t, "fill")
		prefix := strings.Repeat("k", fill) + rapid.OneOf(strange, rapid.String()).Draw(t, "prefix")
		for len(prefix) > table.MaxKey {
			_, size := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-size]
		}
		end := following(prefix)
		if end == "" {
			if strings.Trim(prefix, "\U0010ffff") != "" {
				t.Fatalf("nothing follows %q", prefix)
			}
			return
		}
		if !utf8.ValidString(end) || len(end) > table.MaxKey {
			t.Fatalf("%q follows, which cannot be sent", end)
		}
		if key := prefix + "\U0010ffff\U0010ffff"; key >= end {
			t.Fatalf("%q does not follow all of prefix %q", end, prefix)
		}
	})
}

// page makes an answer of DynamoDB: live items in lower case, expired ones in upper
// case, and where it stopped reading.
func pageOf(last string, sorts ...string) *dynamodb.QueryOutput {
	out := &dynamodb.QueryOutput{}
	for _, sort := range sorts {
		expires := time.Time{}
		if strings.ToUpper(sort) == sort {
			expires = start.Add(-time.Hour)
		}
		out.Items = append(out.Items, stored(sort, nil, expires))
	}
	if last != "" {
		out.LastEvaluatedKey = encodeKey(key(last))
	}
	return out
}

func TestPages(t *testing.T) {
	for _, c := range []struct {
		name string
		q    table.Query
		out  *dynamodb.QueryOutput
		want []string
		next string
	}{
		{"the last", table.Query{}, pageOf("", "a", "b"), []string{"a", "b"}, ""},
		{"more", table.Query{}, pageOf("b", "a", "b"), []string{"a", "b"}, "b"},
		{"expired ones are left out", table.Query{}, pageOf("D", "A", "b", "D"), []string{"b"}, "D"},
		{"nothing but expired ones", table.Query{}, pageOf("D", "A", "D"), nil, "D"},
		{"nothing, but more", table.Query{}, pageOf("x"), nil, "x"},
		{"ends at the bound", table.Query{Before: "b"}, pageOf("b", "a", "b"), []string{"a"}, ""},
		{"ends at an expired bound", table.Query{Before: "B"}, pageOf("B", "A", "B"), nil, ""},
		{"ends behind the prefix", table.Query{Prefix: "m/", After: "m/1"}, pageOf("m0", "m/2", "m0"), []string{"m/2"}, ""},
		{"without what After names", table.Query{After: "a", Before: "c"}, pageOf("", "a", "b"), []string{"b"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.q.Partition = "p"
			tbl, _ := scripted(t, answer{out: c.out})
			page, err := tbl.Query(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, it := range page.Items {
				got = append(got, it.Key.Sort)
			}
			if !slices.Equal(got, c.want) || page.Next != c.next || page.More != (c.next != "") {
				t.Errorf("page of %q, more %v from %q; want %q from %q", got, page.More, page.Next, c.want, c.next)
			}
		})
	}
}

// A Next that does not lead on would have the reader go round for ever.
func TestPageThatDoesNotLeadOn(t *testing.T) {
	for name, out := range map[string]*dynamodb.QueryOutput{
		"same":   pageOf("b"),
		"before": pageOf("a"),
		"no key": {LastEvaluatedKey: attributes{layout.Partition: text("p")}},
	} {
		tbl, _ := scripted(t, answer{out: out})
		_, err := tbl.Query(t.Context(), table.Query{Partition: "p", After: "b"})
		if wantError(t, err, errForeign); t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestQueryLimit(t *testing.T) {
	for limit, want := range map[int]int32{0: 0, 1: 1, 250: 250, math.MaxInt: math.MaxInt32} {
		tbl, s := scripted(t, answer{})
		if _, err := tbl.Query(t.Context(), table.Query{Partition: "p", Limit: limit}); err != nil {
			t.Fatal(err)
		}
		in := s.calls[0].in.(*dynamodb.QueryInput)
		if got := in.Limit; (got == nil) != (want == 0) || (got != nil && *got != want) {
			t.Errorf("limit %d is sent as %v", limit, got)
		}
	}
}
