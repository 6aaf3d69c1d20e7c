package record_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/proof/apigwtest"
)

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
		form := apigwtest.Render(record.Template, context, body)
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

// What a time is as text depends on its type in API Gateway.
func TestTimeOfAnyType(t *testing.T) {
	for _, text := range []string{`1705751700453`, `"1705751700453"`, `1.705751700453E12`, `"1.705751700453E12"`, `"1705751700453.0"`} {
		r, ok, err := record.Parse(`{"requestTimeEpoch":` + text + `,"event":"MESSAGE","connectionId":"c="}`)
		if err != nil || !ok || *r != (record.Record{Event: record.Message, ConnectionID: "c=", Time: 1705751700453}) {
			t.Errorf("%s: %+v, %v, %v", text, r, ok, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct {
		body string
		bad  bool
	}{
		{``, true}, {`x`, true}, {`[]`, true}, {`{"event":7}`, true}, {`{"event":"CONNECT"}`, true},
		{`{"event":"MESSAGE","requestTimeEpoch":"soon"}`, true}, {`{"event":"MESSAGE","requestTimeEpoch":"NaN"}`, true},
		{`{"event":"MESSAGE","requestTimeEpoch":"1e300"}`, true}, {`{"event":"MESSAGE","requestTimeEpoch":true}`, true}, {`{"event":"MESSAGE","requestTimeEpoch":""}`, true},
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
