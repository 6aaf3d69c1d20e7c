//go:build velocity

// Package velocity renders the request template with Apache Velocity, the engine behind
// the template language of API Gateway. Which version runs there, and of which type a
// value is, AWS does not say: so two versions do it here, with each value as each type
// that it may have. It needs a JDK and what `.ci/infra install` fetches.
package velocity

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/proof/apigwtest"
)

// jars has a folder for each version.
const jars = "../../../../.tools/infra/velocity"

func versions(t *testing.T) []string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(jars, "[0-9]*"))
	if err != nil || len(folders) != 2 {
		t.Fatalf("%d versions of Velocity in %s, want 2: run .ci/infra install (%v)", len(folders), jars, err)
	}
	for i := range folders {
		folders[i] = filepath.Base(folders[i])
	}
	return folders
}

// A value is what a variable has, and of which type. A request is all of them, the
// body of the frame included.
type (
	value   struct{ kind, text string }
	request map[string]value
)

// render gives each request to the template.
func render(t *testing.T, version, template string, requests []request) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "template")
	if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	var in strings.Builder
	for _, r := range requests {
		var fields []string
		for name, v := range r {
			fields = append(fields, name+"="+v.kind+":"+base64.StdEncoding.EncodeToString([]byte(v.text)))
		}
		fmt.Fprintln(&in, strings.Join(fields, " "))
	}
	cmd := exec.CommandContext(t.Context(), "java", "-cp", filepath.Join(jars, version, "*"), "Render.java", file, version)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("java failed: %v\n%s", err, stderr.Bytes())
	}
	lines := strings.Fields(string(out))
	if len(lines) != len(requests) {
		t.Fatalf("%d answers to %d requests\n%s", len(lines), len(requests), stderr.Bytes())
	}
	for i := range lines {
		b, err := base64.StdEncoding.DecodeString(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = string(b)
	}
	return lines
}

const epoch = "1705751700453"

func some() request {
	return request{
		"connectionId": {"String", "RU+f/d4TFiACHyA="}, "messageId": {"String", "RU-g_eM0liACHyA="},
		"domainName": {"String", "k3v9example.execute-api.eu-central-1.amazonaws.com"}, "stage": {"String", "prod"},
		"requestTimeEpoch": {"String", epoch}, "body": {"String", "AAEC/+8="},
	}
}

// requests has each variable as each type, and frames of many kinds.
func requests() []request {
	all := []request{some()}
	with := func(name string, v value) {
		r := some()
		r[name] = v
		all = append(all, r)
	}
	for name, v := range some() {
		with(name, value{"Node", v.text})
	}
	for _, kind := range []string{"Long", "BigInteger", "BigDecimal", "Double"} {
		with("requestTimeEpoch", value{kind, epoch})
	}
	with("body", value{"Null", ""})
	for _, text := range []string{
		"", " ", "{\"it's\": \"a \\\"b\\\"\\n\"}", "$context.stage %7D &x=1", "$util.urlEncode($context.connectionId)", "${x} $!{y} #set($z = 1) ## none",
		"#if(true)", "\x00\x01\x1f\t\r\n", "zwölf €  🛥", `\`, `"`, "$!input.body", strings.Repeat("A", 100_000),
	} {
		with("body", value{"String", text})
	}
	return all
}

func TestTemplateMakesARecord(t *testing.T) {
	for _, version := range versions(t) {
		requests := requests()
		for i, text := range render(t, version, record.Template, requests) {
			r := requests[i]
			form, err := url.ParseQuery(text)
			if err != nil || form.Get("Action") != "SendMessage" || form.Get("MessageGroupId") != r["connectionId"].text || form.Get("MessageDeduplicationId") != r["messageId"].text {
				t.Errorf("%s: %.200v made %.300s (%v)", version, r, text, err)
				continue
			}
			got, ok, err := record.Parse(form.Get("MessageBody"))
			if err != nil || !ok {
				t.Errorf("%s: %.200v made no record: %.500s (%v)", version, r, form.Get("MessageBody"), err)
				continue
			}
			body, err := got.Text()
			if err != nil || body != r["body"].text {
				t.Errorf("%s: the text %.80q became %.80q, %v", version, r["body"].text, body, err)
			}
			got.Body = ""
			want := record.Record{
				Event: record.Message, ConnectionID: r["connectionId"].text, DomainName: r["domainName"].text,
				Stage: r["stage"].text, MessageID: r["messageId"].text, Time: 1705751700453,
			}
			if *got != want {
				t.Errorf("%s: got %+v, want %+v", version, *got, want)
			}
			// Our own stand-in, with which all else is tested, does the same.
			if r["requestTimeEpoch"].kind == "Double" {
				continue // it has no types, only texts
			}
			context := map[string]string{}
			for name, v := range r {
				context[name] = v.text
			}
			if own := apigwtest.Render(record.Template, context, r["body"].text).Encode(); own != form.Encode() {
				t.Errorf("%s: the stand-in makes %.300s", version, own)
			}
		}
	}
}

// The test above proves something only if a version of Velocity leaves alone what it
// cannot match: 1.7 does, 2 makes a string of it.
func TestACallThatTakesOnlyStrings(t *testing.T) {
	const call = "$util.urlEncode($context.requestTimeEpoch)"
	of := func(kind string) request {
		r := some()
		r["requestTimeEpoch"] = value{kind, epoch}
		return r
	}
	left := false
	for _, version := range versions(t) {
		got := render(t, version, call, []request{of("String"), of("Node"), of("Long")})
		if got[0] != epoch {
			t.Errorf("%s makes %q", version, got)
		}
		left = left || got[1] == call && got[2] == call
	}
	if !left {
		t.Error("no version leaves a call alone")
	}
}
