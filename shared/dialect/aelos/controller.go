package aelos

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Controller is the claim by which a token says that a viewer may send commands.
// The specification has the role of a controller and leaves the claim open.
type Controller struct {
	claim string
	// value is a string, or a bool or a number as JSON.
	value any
}

// DefaultController is `ctl: true`.
var DefaultController = Controller{claim: "ctl", value: true}

// ParseController reads "claim=value". A value that is true, false or a number in JSON
// is a bool or a number; any other is a string. A viewer may send commands if the claim
// of its token is that value, or a list that contains it.
func ParseController(s string) (Controller, error) {
	claim, value, ok := strings.Cut(s, "=")
	if !ok || claim == "" || value == "" {
		return Controller{}, fmt.Errorf("%q is not a claim and a value, such as ctl=true", s)
	}
	switch claim {
	case "sub", "org", "boat", "role", "exp", "nbf", "iat":
		return Controller{}, fmt.Errorf("claim %q has a meaning of its own", claim)
	}
	c := Controller{claim: claim, value: value}
	var v any
	if json.Unmarshal([]byte(value), &v) == nil {
		switch v.(type) {
		case bool, float64:
			c.value = v
		}
	}
	return c, nil
}

// String is the form that ParseController reads.
func (c Controller) String() string { return fmt.Sprintf("%s=%v", c.claim, c.value) }

func (c Controller) match(claims map[string]any) bool {
	switch v := claims[c.claim].(type) {
	case []any:
		for _, one := range v {
			if c.is(one) {
				return true
			}
		}
		return false
	default:
		return c.is(v)
	}
}

func (c Controller) is(v any) bool {
	switch v.(type) {
	case bool, float64, string:
		return v == c.value
	}
	return false
}
