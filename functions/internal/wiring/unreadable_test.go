package wiring_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"blindpost/functions/internal/wiring"
)

// A frame whose record cannot be read is not dropped in silence: it goes to the dead
// letters, and its connection ends, as with any other frame that fails. The message
// group names the connection.
func TestUnreadableFrameEndsItsConnection(t *testing.T) {
	const good = `{"event":"MESSAGE","connectionId":"` + sampleID + `","domainName":"d.example","stage":"prod","messageId":"m=","requestTimeEpoch":"1790241143502","isBase64Encoded":false,"body":"AAAA"}`
	change := func(pair ...string) string {
		changed := strings.NewReplacer(pair...).Replace(good)
		if changed == good {
			t.Fatalf("%q changes nothing", pair)
		}
		return changed
	}
	for name, body := range map[string]string{
		"nothing":                         "",
		"no JSON":                         "x",
		"a call that Velocity left alone": change(`"1790241143502"`, `$util.urlEncode($context.requestTimeEpoch)`),
		"a variable that there is not":    change(`1790241143502`, `$context.requestTimeEpoch`),
		"a time that is none":             change(`"1790241143502"`, `true`),
		"an event that is none":           change(`MESSAGE`, `CONNECT`),
		"no connection":                   change(`"connectionId":"`+sampleID+`",`, ``),
		"a connection that is none":       change(sampleID, `$context connectionId`),
		"a text that is not base64":       change(`AAAA`, `!`),
		"a text that is a number":         change(`"AAAA"`, `7`),
		"half of it":                      good[:len(good)/2],
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, wiring.Message, "BLINDPOST_INGRESS_ATTEMPTS=3", "BLINDPOST_API_CALLBACK_URL=https://k3v9example.execute-api.eu-central-1.amazonaws.com/prod")
			quoted, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			deliver := func(attempt string) {
				t.Helper()
				out, err := d.Invoke(t.Context(), wiring.Message, []byte(`{"Records":[{"messageId":"m","receiptHandle":"r","attributes":{"ApproximateReceiveCount":"`+attempt+
					`","MessageGroupId":"`+sampleID+`"},"body":`+string(quoted)+`}]}`))
				if err != nil || string(out) != `{"batchItemFailures":[{"itemIdentifier":"m"}]}` {
					t.Errorf("attempt %s: %s, %v", attempt, out, err)
				}
			}
			deliver("1")
			if len(d.peers.ended) != 0 {
				t.Errorf("the first failure has ended %q", d.peers.ended)
			}
			deliver("3")
			if !slices.Equal(d.peers.ended, []string{sampleID}) {
				t.Errorf("ended are %q", d.peers.ended)
			}
			if log := string(d.log.Bytes()); !strings.Contains(log, "message failed") || strings.Contains(log, "AAAA") {
				t.Errorf("logged %s", log)
			}
		})
	}
}

// A job that cannot be done says nothing about the connection in whose order it waits.
func TestJobThatFailsEndsNoConnection(t *testing.T) {
	d := newDesk(t, wiring.Message, "BLINDPOST_INGRESS_ATTEMPTS=3", "BLINDPOST_API_CALLBACK_URL=https://k3v9example.execute-api.eu-central-1.amazonaws.com/prod")
	out, err := d.Invoke(t.Context(), wiring.Message, []byte(`{"Records":[{"messageId":"m","receiptHandle":"r","attributes":{"ApproximateReceiveCount":"3","MessageGroupId":"`+sampleID+
		`"},"body":"{\"kind\":\"nothing that there is\"}"}]}`))
	if err != nil || string(out) != `{"batchItemFailures":[{"itemIdentifier":"m"}]}` || len(d.peers.ended) != 0 {
		t.Errorf("%s, %v, ended %q", out, err, d.peers.ended)
	}
}
