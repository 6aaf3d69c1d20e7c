package agentknock

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const (
	aClient  = "01K2ENXDTW1P3XAR4J7V7C9D0H"
	aRequest = "01K2EP16NWNAGJYF8J1Q2V6P3X"
	ids      = `"client_id":"01K2ENXDTW1P3XAR4J7V7C9D0H","request_id":"01K2EP16NWNAGJYF8J1Q2V6P3X"`
)

// What the specification lets the relay send, and what it does not.
func TestDecode(t *testing.T) {
	for _, c := range []struct {
		role  Role
		text  string
		fault string // "" for none
	}{
		{ClientRole, `{"type":"message",` + ids + `,"kind":"response","payload":null}`, ""},
		{ClientRole, `{"type":"message",` + ids + `,"kind":"response"}`, "lacks payload"},
		{ClientRole, `{"type":"message",` + ids + `,"kind":"request","payload":1}`, `kind "request"`},
		{DeviceRole, `{"type":"message",` + ids + `,"kind":"request","payload":1,"address_id":"00"}`, ""},
		{DeviceRole, `{"type":"message",` + ids + `,"kind":"response","payload":1}`, `kind "response"`},
		{ClientRole, `{"type":"ack",` + ids + `,"kind":"completion","more":[]}`, ""},
		{ClientRole, `{"type":"ack",` + ids + `}`, "lacks kind"},
		{ClientRole, `{"type":"ack",` + ids + `,"Kind":"request"}`, "lacks kind"},
		{ClientRole, `{"type":"ack",` + ids + `,"kind":7}`, "kind of the wrong type"},
		{ClientRole, `{"type":"ack",` + ids + `,"kind":null}`, "kind of the wrong type"},
		{DeviceRole, `{"type":"receipt",` + ids + `,"kind":"response"}`, ""},
		{DeviceRole, `{"type":"receipt",` + ids + `,"kind":"request"}`, `kind "request"`},
		{ClientRole, `{"type":"state",` + ids + `,"exchange":"open","request":"delivered","response":"accepted","completion":"absent"}`, ""},
		{ClientRole, `{"type":"state",` + ids + `,"exchange":"open","request":"accepted","response":"accepted","completion":"absent"}`, "combination"},
		{ClientRole, `{"type":"state",` + ids + `,"exchange":"open","request":"accepted","response":"absent"}`, "lacks completion"},
		{ClientRole, `{"type":"inactive",` + ids + `}`, ""},
		{ClientRole, `{"type":"inactive",` + ids + `,"kind":"nonsense"}`, `kind "nonsense"`},
		{ClientRole, `{"type":"error","error":"X","message":"y","retryable":true,"retry_after_ms":5}`, ""},
		{ClientRole, `{"type":"error","client_id":"` + aClient + `","error":"X","message":"y","retryable":false}`, ""},
		{DeviceRole, `{"type":"error","client_id":"` + aClient + `","error":"X","message":"y","retryable":false}`, "an incomplete scope"},
		{DeviceRole, `{"type":"error","kind":"response","error":"X","message":"y","retryable":false}`, "no exchange"},
		{DeviceRole, `{"type":"error",` + ids + `,"kind":"response","error":"X","message":"y","retryable":false}`, ""},
		{ClientRole, `{"type":"error","error":"X","message":"y"}`, "lacks retryable"},
		{ClientRole, `{"type":"error","error":"X","message":"y","retryable":"true"}`, "wrong type"},
		{ClientRole, `{"type":"error","error":"X","message":"y","retryable":true,"retry_after_ms":1.5}`, "wrong type"},
		{ClientRole, `{"type":"error","error":"X","message":"y","retryable":false,"retry_after_ms":5}`, "a retry cannot help"},
		{DeviceRole, `{"type":"client_state","client_id":"` + aClient + `","state":"pending"}`, ""},
		{DeviceRole, `{"type":"client_state","client_id":"` + aClient + `","state":"gone"}`, `state "gone"`},
		{ClientRole, `{"type":"client_state","client_id":"` + aClient + `","state":"pending"}`, "must not send"},
		{DeviceRole, `{"type":"push_registration","state":"invalid"}`, ""},
		{DeviceRole, `{"type":"caught_up"}`, ""},
		{ClientRole, `{"type":"caught_up"}`, "must not send"},
		{ClientRole, `{"type":"resume",` + ids + `}`, "must not send"},
		{ClientRole, `{"type":"ack","kind":"request","client_id":"` + strings.ToLower(aClient) + `","request_id":"` + aRequest + `"}`, "has the id"},
		{ClientRole, `null`, "null"},
		{ClientRole, `[]`, "no JSON object"},
		{ClientRole, `{}x`, "goes on"},
		{ClientRole, `{"type":"ack"`, "no JSON object"},
		{ClientRole, ``, "no JSON object"},
	} {
		f, err := Decode([]byte(c.text), c.role)
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%s to a %s: %v", c.text, c.role, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s to a %s: %v, not %s", c.text, c.role, err, c.fault)
		case err == nil && f.Type == "":
			t.Errorf("%s has no type", c.text)
		}
	}
}

// A payload keeps its bytes, also where encoding/json gives up.
func TestPayloadBytes(t *testing.T) {
	for _, payload := range []string{
		"null", `{"a" : [1 ,2]}`, `"<&>\u003c"`, "1e400", `{"a":1,"a":2}`, strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
	} {
		f := Frame{Type: Message, ClientID: aClient, RequestID: aRequest, Kind: Response, Payload: json.RawMessage(payload)}
		got, err := Decode(f.Encode(), ClientRole)
		if err != nil || string(got.Payload) != payload {
			t.Errorf("%.50q became %.50q, %v", payload, got.Payload, err)
		}
	}
}

func TestEncodeIsDecoded(t *testing.T) {
	for _, f := range []Frame{
		{Type: Error, ClientID: aClient, RequestID: aRequest, Kind: Request, Code: "X", Text: "a \"text\"", Retryable: true, RetryAfter: time.Minute},
		{Type: State, ClientID: aClient, RequestID: aRequest, Snapshot: Snapshot{"settled", "delivered", "discarded", "delivered"}},
	} {
		got, err := Decode(f.Encode(), ClientRole)
		if err != nil || string(got.Encode()) != string(f.Encode()) {
			t.Errorf("%s became %s, %v", f, got, err)
		}
	}
	secret := Frame{Type: Message, Payload: json.RawMessage(`"secret"`)}
	if strings.Contains(secret.String(), "secret") {
		t.Error("a frame tells its payload to people")
	}
}

// The four rows of the specification have 4, 4, 3 and 8 combinations: a response that
// is not absent implies that the request is delivered.
func TestValidSnapshots(t *testing.T) {
	want := map[string]int{"open": 4, "closing": 4, "settled": 3, "expired": 8}
	states := []string{"absent", "accepted", "delivered", "discarded"}
	for exchange, n := range want {
		got := 0
		for _, request := range states {
			for _, response := range states {
				for _, completion := range states {
					if (Snapshot{exchange, request, response, completion}).Valid() {
						got++
					}
				}
			}
		}
		if got != n {
			t.Errorf("%s has %d combinations, not %d", exchange, got, n)
		}
	}
	if (Snapshot{"nonsense", "delivered", "absent", "absent"}).Valid() {
		t.Error("nonsense is valid")
	}
}

func TestIdentities(t *testing.T) {
	if got := AddressID("correct", "horse", "battery", "staple"); got != "ba76ae9ad5ae374ad08baa99ce253f05" {
		t.Errorf("the address is %s", got)
	}
	for id, ok := range map[string]bool{
		aClient: true, strings.ToLower(aClient): false, strings.Repeat("0", 26): false, "8" + aClient[1:]: false, aClient[1:]: false, aClient + "0": false,
		"7ZZZZZZZZZZZZZZZZZZZZZZZZZ": true, "01K2ENXDTW1P3XAR4J7V7C9D0U": false, "": false,
	} {
		if IsID(id) != ok {
			t.Errorf("%q", id)
		}
	}
	if id := NewID(time.Now()); !IsID(id) {
		t.Errorf("%s is made", id)
	}
	if first, second := NewToken(), NewToken(); len(first) != 43 || first == second || len(NewAddress()) != 32 {
		t.Error("tokens or addresses are wrong")
	}
}
