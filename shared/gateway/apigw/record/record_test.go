package record_test

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blindpost/shared/gateway/apigw/record"
)

// render does what API Gateway does with the template, for the few words of VTL
// that it uses. A reference that is left over is an error.
func render(t interface{ Fatalf(string, ...any) }, context map[string]string, body string) string {
	var value func(expr string) string
	call := regexp.MustCompile(`^\$util\.(urlEncode|base64Encode)\((.*)\)$`)
	value = func(expr string) string {
		if m := call.FindStringSubmatch(expr); m != nil {
			if m[1] == "urlEncode" {
				return url.QueryEscape(value(m[2]))
			}
			return base64.StdEncoding.EncodeToString([]byte(value(m[2])))
		}
		if expr == "$input.body" {
			return body
		}
		v, ok := context[strings.TrimPrefix(expr, "$context.")]
		if !ok {
			t.Fatalf("the template refers to %s", expr)
		}
		return v
	}
	reference := regexp.MustCompile(`\$util\.urlEncode\((?:\$util\.base64Encode\(\$input\.body\)|\$context\.[a-zA-Z]+)\)`)
	out := reference.ReplaceAllStringFunc(record.Template, value)
	if strings.ContainsAny(out, "$#\n") {
		t.Fatalf("not rendered: %s", out)
	}
	return out
}

func TestTemplateMakesARecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[A-Za-z0-9_-]{11,15}=`)
		context := map[string]string{
			"connectionId":     id.Draw(t, "connection"),
			"messageId":        id.Draw(t, "message"),
			"domainName":       "abc123.execute-api.eu-central-1.amazonaws.com",
			"stage":            rapid.SampledFrom([]string{"prod", "$default", "a-b_c"}).Draw(t, "stage"),
			"requestTimeEpoch": "1705751700453",
		}
		body := rapid.OneOf(
			rapid.Just(""),
			rapid.SampledFrom([]string{`{"it's": "a \"b\"\n"}`, "AAEC/+8=", "$context.stage %7D &x=1", "\x00\x01\x1f", "zwölf €"}),
			rapid.String(),
		).Draw(t, "body")
		form, err := url.ParseQuery(render(t, context, body))
		if err != nil {
			t.Fatal(err)
		}
		if form.Get("Action") != "SendMessage" || form.Get("MessageGroupId") != context["connectionId"] ||
			form.Get("MessageDeduplicationId") != context["messageId"] {
			t.Errorf("form is %v", form)
		}
		r, ok, err := record.Parse(form.Get("MessageBody"))
		if err != nil || !ok {
			t.Fatalf("%v, %v: %s", ok, err, form.Get("MessageBody"))
		}
		text, err := r.Text()
		if err != nil {
			t.Fatal(err)
		}
		r.Body = ""
		want := record.Record{
			Event: record.Message, ConnectionID: context["connectionId"], DomainName: context["domainName"],
			Stage: context["stage"], MessageID: context["messageId"], Time: 1705751700453,
		}
		if *r != want || text != body {
			t.Errorf("got %+v and %q\nwant %+v and %q", *r, text, want, body)
		}
	})
}

func TestRecordSurvivesTheQueue(t *testing.T) {
	want := record.Record{
		Event: record.Disconnect, ConnectionID: "c=", DomainName: "d.example", Stage: "s",
		Time: 12, Code: 1001, Reason: "going \"away\"\n",
	}
	body, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, ok, err := record.Parse(body)
	if err != nil || !ok || *got != want {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct {
		body string
		bad  bool
	}{
		{``, true}, {`x`, true}, {`[]`, true}, {`{"event":7}`, true}, {`{"event":"CONNECT"}`, true},
		{`{"event":"MESSAGE","requestTimeEpoch":"soon"}`, true},
		{`{}`, false}, {`{"kind":"pump"}`, false},
	} {
		r, ok, err := record.Parse(tt.body)
		if ok || r != nil || (err != nil) != tt.bad {
			t.Errorf("%s: got %v, %v, %v", tt.body, r, ok, err)
		}
	}
	secret := &record.Record{Body: "not base64 but c2VjcmV0"}
	if text, err := secret.Text(); err == nil || text != "" || strings.Contains(err.Error(), "c2Vj") {
		t.Errorf("got %q, %v", text, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"event":"MESSAGE","connectionId":"c=","body":"AAEC"}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, ok, err := record.Parse(body)
		if ok != (r != nil) || (ok && err != nil) {
			t.Fatalf("%v, %v, %v", r, ok, err)
		}
		if ok {
			_, _ = r.Text()
		}
	})
}
