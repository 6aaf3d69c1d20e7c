package apigwtest

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// The words of VTL that our template uses. A reference in double quotes becomes a
// string; with "!", null becomes an empty one.
var (
	reference = regexp.MustCompile(`\$util\.urlEncode\((?:\$util\.base64Encode\("\$!input\.body"\)|"\$context\.[a-zA-Z]+")\)`)
	call      = regexp.MustCompile(`^\$util\.(urlEncode|base64Encode)\((.*)\)$`)
)

// Render does what API Gateway does with a request template, for the few words of
// VTL that ours uses, and reads the outcome as the form that SQS gets. It panics
// if the template has any others.
func Render(template string, context map[string]string, body string) url.Values {
	var value func(expr string) string
	value = func(expr string) string {
		if m := call.FindStringSubmatch(expr); m != nil {
			if m[1] == "urlEncode" {
				return url.QueryEscape(value(m[2]))
			}
			return base64.StdEncoding.EncodeToString([]byte(value(m[2])))
		}
		if expr == `"$!input.body"` {
			return body
		}
		v, ok := context[strings.TrimSuffix(strings.TrimPrefix(expr, `"$context.`), `"`)]
		if !ok {
			panic(fmt.Sprintf("template refers to %s", expr))
		}
		return v
	}
	out := reference.ReplaceAllStringFunc(template, value)
	if strings.ContainsAny(out, "$#\n") {
		panic("template has words that are not known here: " + out)
	}
	form, err := url.ParseQuery(out)
	if err != nil {
		panic(err)
	}
	return form
}
