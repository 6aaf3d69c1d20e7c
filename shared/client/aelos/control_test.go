package aelos

import (
	"reflect"
	"testing"
)

func TestControlFrames(t *testing.T) {
	for text, c := range map[string]Control{
		`{"t":"hello","proto":2,"role":"boat","token":"x"}`:                Hello{2, "boat", "x"},
		`{"t":"welcome","proto":1}`:                                        Welcome{1},
		`{"t":"error","code":"limit"}`:                                     Error{Code: "limit"},
		`{"t":"error","code":"auth","msg":"no"}`:                           Error{"auth", "no"},
		`{"t":"viewers","count":0}`:                                        Viewers{},
		`{"t":"viewers","count":1,"attach":["0a0b0c0d"]}`:                  Viewers{Count: 1, Attach: []string{"0a0b0c0d"}},
		`{"t":"viewers","count":0,"detach":["0a0b0c0d"]}`:                  Viewers{Detach: []string{"0a0b0c0d"}},
		`{"t":"boat-status","online":false}`:                               BoatStatus{},
		`{"t":"hs1","vs":"","e":"x"}`:                                      Hs1{"", "x"},
		`{"t":"hs2","vs":"00000000","e":"x","s":"y"}`:                      Hs2{"00000000", "x", "y"},
		`{"t":"result","id":0,"statusCode":503,"message":"the boat left"}`: Result{0, 503, "the boat left"},
		`{"t":"ping"}`: Ping{},
		`{"t":"pong"}`: Pong{},
	} {
		if got, err := ParseControl([]byte(text)); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s is read as %#v, %v", text, got, err)
		}
		if got := string(Encode(c)); got != text {
			t.Errorf("%#v is written as %s", c, got)
		}
	}
	for _, text := range []string{
		``, `null`, `[]`, `"ping"`, `{}`, `{"t":null}`, `{"t":"nonsense"}`, `{"T":"ping"}`, `{"t":"ping","x":1}`, `{"t":"ping"} {}`,
		`{"t":"welcome"}`, `{"t":"welcome","proto":3}`, `{"t":"welcome","proto":"2"}`, `{"t":"welcome","proto":null}`,
		`{"t":"error","code":"other"}`, `{"t":"error","code":"auth","msg":null}`,
		`{"t":"viewers","count":-1}`, `{"t":"viewers","count":1.5}`, `{"t":"viewers"}`, `{"t":"viewers","count":1,"attach":["0A0B0C0D"]}`,
		`{"t":"viewers","count":1,"attach":["0a0b0c"]}`, `{"t":"viewers","count":1,"attach":[1]}`,
		`{"t":"boat-status"}`, `{"t":"boat-status","online":0}`, `{"t":"hs2","vs":"","e":""}`,
		`{"t":"result","id":1,"statusCode":503,"message":""}`, `{"t":"result","id":0,"statusCode":200,"message":""}`, `{"t":"result","statusCode":503,"message":""}`,
	} {
		if c, err := ParseControl([]byte(text)); err == nil {
			t.Errorf("%s is read as %#v", text, c)
		}
	}
}
