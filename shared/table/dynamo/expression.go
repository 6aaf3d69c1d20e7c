package dynamo

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"blindpost/shared/table"
	"blindpost/shared/table/dynamo/layout"
)

// expression collects the names and values of the expressions of one request. Every name
// is a placeholder, because DynamoDB reserves hundreds of words and names may have any
// character.
type expression struct {
	placeholders map[string]string
	names        map[string]string
	values       attributes
}

// name returns the placeholder of a stored name.
func (e *expression) name(stored string) string {
	if p, ok := e.placeholders[stored]; ok {
		return p
	}
	if e.names == nil {
		e.names, e.placeholders = map[string]string{}, map[string]string{}
	}
	p := "#" + strconv.Itoa(len(e.names))
	e.names[p] = stored
	e.placeholders[stored] = p
	return p
}

// attr returns the placeholder of an attribute of the contract.
func (e *expression) attr(attr string) string { return e.name(layout.Name(attr)) }

// value returns the placeholder of a value.
func (e *expression) value(v types.AttributeValue) string {
	if e.values == nil {
		e.values = attributes{}
	}
	p := ":" + strconv.Itoa(len(e.values))
	e.values[p] = v
	return p
}

// condition is the condition expression of an operation at this moment, nil for none.
//
// An expired item counts as absent, so a condition that needs an item also requires that
// it has not expired, and a condition that needs none accepts an expired one. An update
// always requires that the item has not expired, as it changes the stored item.
func (e *expression) condition(op table.Op, now time.Time) *string {
	var all []string
	moment := ""
	expires := func(compare string) string {
		if moment == "" {
			moment = e.value(seconds(now))
		}
		return e.name(layout.Expires) + compare + moment
	}
	live := op.Action == table.Update
	for i := range op.Conds {
		c := &op.Conds[i]
		switch c.Test {
		case table.Exists:
			all = append(all, "attribute_exists("+e.name(layout.Partition)+")")
			live = true
		case table.Absent:
			all = append(all, "(attribute_not_exists("+e.name(layout.Partition)+") OR "+expires(" <= ")+")")
		case table.AttrAbsent:
			all = append(all, "(attribute_not_exists("+e.attr(c.Attr)+") OR "+expires(" <= ")+")")
		case table.Equal:
			all = append(all, e.attr(c.Attr)+" = "+e.value(encodeValue(c.Value)))
			live = true
		case table.Less:
			all = append(all, e.attr(c.Attr)+" < "+e.value(encodeValue(c.Value)))
			live = true
		case table.AtMost:
			all = append(all, e.attr(c.Attr)+" <= "+e.value(encodeValue(c.Value)))
			live = true
		}
	}
	for _, attr := range slices.Sorted(maps.Keys(op.Add)) {
		all = append(all, e.sumFits(attr, op.Add[attr]))
	}
	if live {
		all = append(all, "(attribute_not_exists("+e.name(layout.Expires)+") OR "+expires(" > ")+")")
	}
	if len(all) == 0 {
		return nil
	}
	joined := strings.Join(all, " AND ")
	return &joined
}

// sumFits requires that an attribute is absent or a number to which delta can be added
// within 64 bits; DynamoDB itself allows 38 digits.
func (e *expression) sumFits(attr string, delta int64) string {
	compare, limit := " <= ", math.MaxInt64-max(delta, 0)
	if delta < 0 {
		compare, limit = " >= ", math.MinInt64-delta
	}
	p := e.attr(attr)
	return "(attribute_not_exists(" + p + ") OR " + p + compare + e.value(number(limit)) + ")"
}

// update is the update expression of an operation.
func (e *expression) update(op table.Op) *string {
	var set, remove, add []string
	for _, attr := range slices.Sorted(maps.Keys(op.Set)) {
		set = append(set, e.attr(attr)+" = "+e.value(encodeValue(op.Set[attr])))
	}
	for _, attr := range op.Remove {
		remove = append(remove, e.attr(attr))
	}
	for _, attr := range slices.Sorted(maps.Keys(op.Add)) {
		add = append(add, e.attr(attr)+" "+e.value(number(op.Add[attr])))
	}
	switch {
	case op.KeepForever:
		remove = append(remove, e.name(layout.Expires))
	case !op.Expires.IsZero():
		set = append(set, e.name(layout.Expires)+" = "+e.value(seconds(table.RoundExpires(op.Expires))))
	}
	if len(set) == 0 && len(add) == 0 {
		set = append(set, e.name(layout.Marker)+" = "+e.value(text("")))
	}
	var clauses []string
	for _, clause := range []struct {
		keyword string
		parts   []string
	}{{"SET ", set}, {"REMOVE ", remove}, {"ADD ", add}} {
		if len(clause.parts) > 0 {
			clauses = append(clauses, clause.keyword+strings.Join(clause.parts, ", "))
		}
	}
	joined := strings.Join(clauses, " ")
	return &joined
}
