package agentknock

import (
	"errors"
	"strings"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

const (
	aClient  = "01K2ENXDTW1P3XAR4J7V7C9D0H"
	aRequest = "01K2EP16NWNAGJYF8J1Q2V6P3X"
)

func TestDecode(t *testing.T) {
	ids := `"client_id":"` + aClient + `","request_id":"` + aRequest + `"`
	both := scope{Client: aClient, Request: aRequest}
	of := func(k kind) scope { s := both; s.Kind = k; return s }
	for _, c := range []struct {
		name string
		may  map[string]rule
		in   string
		want frame
		err  error
	}{
		{"request", clientMay, `{"type":"message",` + ids + `,"kind":"request","payload":{"a": 1}}`,
			frame{Type: "message", scope: of(request), Payload: []byte(`{"a": 1}`)}, nil},
		{"null is a payload", clientMay, `{"payload":null,"type":"message",` + ids + `,"kind":"completion"}`,
			frame{Type: "message", scope: of(completion), Payload: []byte(`null`)}, nil},
		{"no payload", clientMay, `{"type":"message",` + ids + `,"kind":"request"}`, frame{Type: "message", scope: of(request)}, errNoPayload},
		{"unknown members", clientMay, `{"type":"resume",` + ids + `,"kind":7,"x":{},"Type":"ack","CLIENT_ID":1}`, frame{Type: "resume", scope: both}, nil},
		{"names are exact", clientMay, `{"Type":"resume",` + ids + `}`, frame{scope: both}, errNoType},
		{"escapes in names and values", clientMay, `{"\u0074ype":"res\u0075me",` + ids + `}`, frame{Type: "resume", scope: both}, nil},
		{"a member twice", clientMay, `{"type":"resume","type":"resume",` + ids + `}`, frame{}, errTwice},
		{"type is no string", clientMay, `{"type":1,` + ids + `}`, frame{scope: both}, errNoType},
		{"lower case", clientMay, `{"type":"resume",` + strings.ToLower(ids) + `}`, frame{Type: "resume"}, errNoID},
		{"zero id", clientMay, `{"type":"resume","client_id":"` + aClient + `","request_id":"` + zeroID + `"}`, frame{Type: "resume"}, errNoID},
		{"one id", clientMay, `{"type":"resume","client_id":"` + aClient + `"}`, frame{Type: "resume"}, errNoID},
		{"null id", clientMay, `{"type":"resume","client_id":"` + aClient + `","request_id":null}`, frame{Type: "resume"}, errNoID},
		{"ack of a response", clientMay, `{"type":"ack",` + ids + `,"kind":"response"}`, frame{Type: "ack", scope: of(response)}, nil},
		{"a client acks no request", clientMay, `{"type":"ack",` + ids + `,"kind":"request"}`, frame{Type: "ack", scope: both}, errKind},
		{"a client responds", clientMay, `{"type":"message",` + ids + `,"kind":"response","payload":1}`, frame{Type: "message", scope: both}, errKind},
		{"a client sets no state", clientMay, `{"type":"set_client_state","client_id":"` + aClient + `","state":"active"}`, frame{Type: "set_client_state"}, errForbidden},
		{"receipt", clientMay, `{"type":"receipt",` + ids + `,"kind":"request"}`, frame{Type: "receipt", scope: both}, errForbidden},
		{"unknown type", deviceMay, `{"type":"hello"}`, frame{Type: "hello"}, errForbidden},
		{"response", deviceMay, `{"type":"message",` + ids + `,"kind":"response","payload":[]}`, frame{Type: "message", scope: of(response), Payload: []byte(`[]`)}, nil},
		{"a device requests", deviceMay, `{"type":"message",` + ids + `,"kind":"request","payload":[]}`, frame{Type: "message", scope: both}, errKind},
		{"set state", deviceMay, `{"type":"set_client_state","client_id":"` + aClient + `","state":"active","request_id":3}`,
			frame{Type: "set_client_state", scope: scope{Client: aClient}, State: "active"}, nil},
		{"set to pending", deviceMay, `{"type":"set_client_state","client_id":"` + aClient + `","state":"pending"}`, frame{Type: "set_client_state"}, errState},
		{"set nobody", deviceMay, `{"type":"set_client_state","state":"active"}`, frame{Type: "set_client_state"}, errNoID},
		{"no object", clientMay, `[]`, frame{}, errNotJSON},
	} {
		got, err := decode([]byte(c.in), c.may)
		if !errors.Is(err, c.err) || got.Type != c.want.Type || got.scope != c.want.scope || got.State != c.want.State ||
			string(got.Payload) != string(c.want.Payload) || (got.Payload == nil) != (c.want.Payload == nil) {
			t.Errorf("%s: %+v, %v\nwant %+v, %v", c.name, got, err, c.want, c.err)
		}
	}
}

// Whatever a peer sends, decoding accepts or refuses it, and an accepted frame can be written.
func FuzzDecode(f *testing.F) {
	ids := `"client_id":"` + aClient + `","request_id":"` + aRequest + `"`
	for _, s := range []string{
		`{"type":"message",` + ids + `,"kind":"request","payload":{"a":[1,"\ud800"]}}`, `{"type":"resume",` + ids + `}`,
		`{"type":"ack",` + ids + `,"kind":"completion"}`, `{"type":"set_client_state","client_id":"` + aClient + `","state":"revoked"}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, device bool) {
		may := clientMay
		if device {
			may = deviceMay
		}
		got, err := decode(data, may)
		if (got.Client == "") != (got.Request == "") && (err != nil || got.Type != typeSetClientState) {
			t.Fatalf("a scope by half: %+v", got.scope)
		}
		if err != nil || got.Type != typeMessage {
			return
		}
		role := peer.DeviceRole
		if got.Kind == response {
			role = peer.ClientRole
		}
		out := messageFrame(got.scope, "", got.Payload)
		if len(out.Data) > len(data) {
			t.Fatalf("a frame of %d bytes has grown to %d", len(data), len(out.Data))
		}
		back, err := peer.Decode(out.Data, role)
		if strings.Count(string(data), "[")+strings.Count(string(data), "{") > 9_000 {
			return // more than our peer reads
		}
		if err != nil || string(back.Payload) != string(got.Payload) {
			t.Fatalf("what was taken does not come out: %v", err)
		}
	})
}

// Every frame of the relay is valid for its recipient.
func TestFramesAreValid(t *testing.T) {
	both := scope{Client: aClient, Request: aRequest, Kind: request}
	resp := scope{Client: aClient, Request: aRequest, Kind: response}
	for _, c := range []struct {
		to   peer.Role
		data []byte
	}{
		{peer.ClientRole, ackFrame(both).Data}, {peer.ClientRole, receiptFrame(both).Data},
		{peer.ClientRole, inactiveFrame(both).Data}, {peer.ClientRole, inactiveFrame(both.whole()).Data},
		{peer.ClientRole, stateFrame(both, Begun()).Data}, {peer.ClientRole, messageFrame(resp, "", []byte(`null`)).Data},
		{peer.DeviceRole, ackFrame(resp).Data}, {peer.DeviceRole, receiptFrame(resp).Data},
		{peer.DeviceRole, messageFrame(both, strings.Repeat("a", 32), []byte(`{}`)).Data},
		{peer.DeviceRole, stateFrame(both, Begun()).Data}, {peer.DeviceRole, caughtUpFrame().Data},
		{peer.DeviceRole, pushFrame(pushMissing).Data}, {peer.DeviceRole, clientStateFrame(aClient, stateActive).Data},
		{peer.DeviceRole, (&fault{code: codeInvalidFrame, message: "x"}).frame(scope{}).Data},
		{peer.ClientRole, (&fault{codeRateLimited, "x", minute}).frame(both).Data},
	} {
		if _, err := peer.Decode(c.data, c.to); err != nil {
			t.Errorf("%s: %v", c.data, err)
		}
	}
}
