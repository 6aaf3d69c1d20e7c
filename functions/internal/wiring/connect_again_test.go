package wiring_test

import (
	"strings"
	"testing"

	"blindpost/functions/internal/wiring"
	"blindpost/shared/table"
)

// The front, or Lambda, has lost the answer to a $connect and asks again: there is one
// challenge, said once, and the address is counted once.
func TestSampleConnectAgain(t *testing.T) {
	d := newDesk(t, wiring.Connect)
	key := table.Key{Partition: "c/" + sampleConn, Sort: "c"}
	var first table.Item
	for n := range 3 {
		if out, err := d.sample(wiring.Connect, "connect.json"); err != nil || !strings.Contains(out, `"statusCode":200`) {
			t.Fatalf("%s, %v", out, err)
		}
		it, err := d.table.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			first = it
		}
		if string(it.Attrs["p"].Raw()) != string(first.Attrs["p"].Raw()) || len(first.Attrs["p"].Raw()) == 0 {
			t.Error("there is another challenge")
		}
	}
	if said := d.sqs.Bodies(d.ingress); len(said) != 1 {
		t.Errorf("the challenge is said %d times: %q", len(said), said)
	}
	it, err := d.table.Get(t.Context(), table.Key{Partition: "ip/203.0.113.77", Sort: "n"})
	if err != nil || it.Attrs["n"].Num() != 1 {
		t.Errorf("the address was counted as %v, %v", it.Attrs, err)
	}
}

// A device that has connected again meanwhile keeps its new connection, when the $connect
// of the older one, whose answer was lost, is repeated.
func TestSampleDeviceReplacedBeforeItIsAskedAgain(t *testing.T) {
	d := newDesk(t, wiring.Connect, "BLINDPOST_ORIGIN_SECRET_ARN="+secretARN)
	d.http("http-claim.json", 200, "")
	const old, newer = "eXv4AdHUFiACJbg=", "bNewer0000000000="
	connect := func(id string, status string) {
		t.Helper()
		if out, err := d.sample(wiring.Connect, "connect-device.json", old, id); err != nil || !strings.Contains(out, `"statusCode":`+status) {
			t.Errorf("%s: %s, %v, want %s", id, out, err, status)
		}
	}
	connect(old, "200")
	connect(newer, "200")
	connect(old, "409")
}
