package aelos

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Claims and tokens.

func boatClaims(org, id string) jwt.MapClaims {
	return jwt.MapClaims{"sub": id, "org": org, "role": "boat", "exp": time.Now().Add(24 * time.Hour).Unix()}
}

func viewerClaims(org, boat string) jwt.MapClaims {
	return jwt.MapClaims{"sub": "somebody", "boat": boat, "org": org, "role": "viewer", "exp": time.Now().Add(time.Hour).Unix()}
}

func controllerClaims(org, boat string) jwt.MapClaims {
	return with(viewerClaims(org, boat), "ctl", true)
}

func with(c jwt.MapClaims, name string, value any) jwt.MapClaims {
	c = maps.Clone(c)
	if c[name] = value; value == nil {
		delete(c, name)
	}
	return c
}

func mint(t testing.TB, secret string, claims jwt.MapClaims) string {
	t.Helper()
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		t.Error(err)
	}
	return s
}

// What peers of the stories say first.

func (w *world) boat(proto int, node ...int) *line {
	w.t.Helper()
	return w.dial(node...).hello("boat", proto, boatClaims("org", "boat"))
}

func (w *world) viewer(proto int, node ...int) *line {
	w.t.Helper()
	return w.dial(node...).hello("viewer", proto, viewerClaims("org", "boat"))
}

func (w *world) controller(node ...int) *line {
	w.t.Helper()
	return w.dial(node...).hello("viewer", 2, controllerClaims("org", "boat"))
}

// tagOf is the tag of a viewer.
func (w *world) tagOf(l *line) string {
	w.t.Helper()
	v := w.roster("org", "boat").byConn(l.id)
	if v == nil {
		w.t.Fatalf("%s is not attached", l.id)
	}
	return v.Tag.String()
}

const (
	online    = `{"t":"boat-status","online":true}`
	offline   = `{"t":"boat-status","online":false}`
	nobody    = `{"t":"viewers","count":0}`
	welcome2  = `{"t":"welcome","proto":2}`
	welcome1  = `{"t":"welcome","proto":1}`
	noBoat    = `{"t":"error","code":"boat-offline","msg":"the boat cannot be reached"}`
	wrong     = `{"t":"error","code":"proto","msg":"this frame is not for you to send"}`
	unread    = `{"t":"error","code":"proto","msg":"the frame cannot be read"}`
	noAdmit   = `{"t":"error","code":"auth","msg":"the token is not valid"}`
	noReach   = `{"t":"result","id":0,"statusCode":503,"message":"the boat cannot be reached"}`
	notYours  = `{"t":"result","id":0,"statusCode":503,"message":"this session may not send commands"}`
	noCommand = `{"t":"result","id":0,"statusCode":503,"message":"the boat takes no commands"}`
	tooMany   = `{"t":"result","id":0,"statusCode":429,"message":"too many commands"}`
)

// viewers is that frame.
func viewers(count int, attach, detach []string) string {
	b, _ := json.Marshal(viewersFrame{T: typeViewers, Count: count, Attach: attach, Detach: detach})
	return string(b)
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	out, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
