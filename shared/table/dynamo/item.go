package dynamo

import (
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"blindpost/shared/table"
	"blindpost/shared/table/dynamo/layout"
)

// attributes is an item in the form of the SDK.
type attributes = map[string]types.AttributeValue

var errForeign = errors.New("stored item is not one of ours")

func encodeKey(k table.Key) attributes {
	return attributes{layout.Partition: text(k.Partition), layout.Sort: text(k.Sort)}
}

func encodeItem(k table.Key, attrs table.Attrs, expires time.Time) attributes {
	m := make(attributes, len(attrs)+3)
	m[layout.Partition], m[layout.Sort] = text(k.Partition), text(k.Sort)
	if !expires.IsZero() {
		m[layout.Expires] = seconds(table.RoundExpires(expires))
	}
	for attr, v := range attrs {
		m[layout.Name(attr)] = encodeValue(v)
	}
	return m
}

func encodeValue(v table.Value) types.AttributeValue {
	switch v.Kind() {
	case table.KindNumber:
		return number(v.Num())
	case table.KindBytes:
		if v.Raw() == nil {
			return &types.AttributeValueMemberB{Value: []byte{}}
		}
		return &types.AttributeValueMemberB{Value: v.Raw()}
	default:
		return text(v.Str())
	}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func seconds(t time.Time) types.AttributeValue { return number(t.Unix()) }

// decodeItem decodes a stored item, nil if there is none. It shares the values of m, which
// the SDK made for this answer only.
func decodeItem(m attributes) (*table.Item, error) {
	if len(m) == 0 {
		return nil, nil
	}
	it := &table.Item{Attrs: make(table.Attrs, len(m))}
	for name, stored := range m {
		v, ok := decodeValue(stored)
		if !ok {
			return nil, errForeign
		}
		if attr, theirs := layout.Attr(name); theirs {
			it.Attrs[attr] = v
			continue
		}
		switch name {
		case layout.Partition:
			it.Key.Partition = v.Str()
		case layout.Sort:
			it.Key.Sort = v.Str()
		case layout.Expires:
			if v.Kind() != table.KindNumber {
				return nil, errForeign
			}
			it.Expires = time.Unix(v.Num(), 0).UTC()
		}
	}
	if it.Key.Partition == "" || it.Key.Sort == "" {
		return nil, errForeign
	}
	return it, nil
}

// decodeLive is decodeItem, nil also for an item that has expired.
func decodeLive(m attributes, now time.Time) (*table.Item, error) {
	it, err := decodeItem(m)
	if err != nil || it == nil || it.Expired(now) {
		return nil, err
	}
	return it, nil
}

func decodeValue(stored types.AttributeValue) (table.Value, bool) {
	switch v := stored.(type) {
	case *types.AttributeValueMemberS:
		return table.String(v.Value), true
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		return table.Number(n), err == nil
	case *types.AttributeValueMemberB:
		return table.Bytes(v.Value), true
	default:
		return table.Value{}, false
	}
}
