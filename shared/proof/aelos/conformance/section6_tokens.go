package conformance

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"

	wire "blindpost/shared/client/aelos"
)

var section6 = []story{
	{Name: "Section6_BadTokensAreRefusedAlike", Tell: tokensBad},
	{Name: "Section6_TokensThatAreGood", Tell: tokensGood},
	{Name: "Section8_ExpiryEndsConnection", Tell: tokensExpire},
}

// badToken is a token that opens no door, with the role that its bearer claims.
type badToken struct{ name, role, token string }

// badTokens is every way to get a token wrong that we know of, but for times that
// pass.
func (b *boat) badTokens() (all []badToken) {
	b.t.Helper()
	boat := wire.BoatClaims(b.org, b.id, inAnHour())
	viewer := wire.ControllerClaims(b.org, "user", b.id, inAnHour())
	sign := func(method jwt.SigningMethod, key any, c wire.Claims) string {
		token, err := wire.MintWith(method, key, c)
		if err != nil {
			b.t.Fatal(err)
		}
		b.r.secrets.Add("a token", []byte(token))
		return token
	}
	for _, role := range []string{"boat", "viewer"} {
		add := func(name, token string) { all = append(all, badToken{role + ", " + name, role, token}) }
		good, other := boat, viewer
		if role == "viewer" {
			good, other = viewer, boat
		}
		claims := func(name string, c wire.Claims) { add(name, b.mint(c)) }

		claims("expired", good.With("exp", time.Now().Add(-time.Hour).Unix()))
		claims("just expired", good.With("exp", time.Now().Add(-2*time.Second).Unix()))
		claims("of 1970", good.With("exp", 0))
		claims("with a negative expiry", good.With("exp", -1))
		claims("without expiry", good.With("exp", nil))
		claims("with an expiry that is null", good.With("exp", any((*int)(nil))))
		claims("with an expiry that is text", good.With("exp", fmt.Sprint(inAnHour().Unix())))
		claims("with an expiry that is a list", good.With("exp", []int64{inAnHour().Unix()}))

		claims("of the other role", other)
		claims("without role", good.With("role", nil))
		claims("of no role", good.With("role", "captain"))
		claims("of both roles", good.With("role", []string{"boat", "viewer"}))
		claims("with another spelling of the role", good.With("role", strings.ToUpper(role)))
		claims("without org", good.With("org", nil))
		claims("with an empty org", good.With("org", ""))
		claims("with an org that is a number", good.With("org", 7))
		claims("without sub", good.With("sub", nil))
		claims("with an empty sub", good.With("sub", ""))
		claims("with a sub that is a list", good.With("sub", []string{b.id}))
		if role == "boat" {
			claims("with a boat claim", good.With("boat", b.id))
			claims("with another boat's boat claim", good.With("boat", "another"))
			claims("with an empty boat claim", good.With("boat", ""))
			claims("that is a viewer's, renamed", viewer.With("role", "boat"))
		} else {
			claims("without boat", good.With("boat", nil))
			claims("with an empty boat", good.With("boat", ""))
			claims("with a boat that is a list", good.With("boat", []string{b.id}))
			claims("that is a boat's, renamed", boat.With("role", "viewer"))
		}
		claims("of nothing", wire.Claims{})

		token := b.mint(good)
		parts := strings.Split(token, ".")
		none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`))
		add("of nobody's signature", parts[0]+"."+parts[1]+".")
		add("without signature", parts[0]+"."+parts[1])
		add("alg none", sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good))
		add("alg none with a signature", none+"."+parts[1]+"."+parts[2])
		for _, spelling := range []string{"None", "NONE", "nOnE", ""} {
			head := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":%q,"typ":"JWT"}`, spelling))
			add("alg "+spelling, head+"."+parts[1]+".")
		}
		add("signed by somebody else", sign(jwt.SigningMethodHS256, []byte("not the shared secret, but as long as it"), good))
		add("signed with nothing", sign(jwt.SigningMethodHS256, []byte{}, good))
		add("HS384", sign(jwt.SigningMethodHS384, b.r.Secret, good))
		add("HS512", sign(jwt.SigningMethodHS512, b.r.Secret, good))
		if key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err == nil {
			add("ES256", sign(jwt.SigningMethodES256, key, good))
		}
		if key, err := rsa.GenerateKey(rand.Reader, 2048); err == nil {
			add("RS256", sign(jwt.SigningMethodRS256, key, good))
		}
		flipped := []byte(parts[2])
		flipped[10] ^= 1
		add("with a turned bit in its signature", parts[0]+"."+parts[1]+"."+string(flipped))
		swapped := strings.Split(b.mint(good.With("org", "another org")), ".")
		add("with the claims of another", parts[0]+"."+swapped[1]+"."+parts[2])
		add("of too many parts", token+"."+parts[2])
		add("with white space", " "+token)
		add("empty", "")
		add("no token at all", "let me in")
		add("long", strings.Repeat("A", 8000)+"."+parts[1]+"."+parts[2])
	}
	return all
}

// Whatever is wrong with a token: the answer is the same, to the byte, and nobody
// else hears of it.
func tokensBad(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, tag := b.watched()
	var answer []byte
	var code websocket.StatusCode
	first := ""
	for _, bad := range b.badTokens() {
		p := r.stranger(t, bad.name, line{})
		p.send(wire.Hello{Proto: 2, Role: bad.role, Token: bad.token})
		e := p.frame("error auth")
		if c, ok := e.control.(wire.Error); !ok || c.Code != wire.CodeAuth {
			p.instead("error auth", e)
		}
		closed := p.wantClosed()
		if first == "" {
			answer, code, first = e.message.Data, closed, bad.name
		}
		if !bytes.Equal(e.message.Data, answer) || closed != code {
			t.Errorf("%s is told %s and closed with %d, unlike %s: %s, %d", bad.name, e.message.Data, closed, first, answer, code)
		}
	}
	body := r.noise(60)
	ship.sendPayload(tagged(wire.Snapshot, tag, 1, body))
	v.wantPayload(untagged(wire.Snapshot, 1, body))
	ship.wantNothing()
	v.wantNothing()
}

// What is not forbidden is allowed: claims that we do not know, ids of whatever
// characters, times as numbers with a fraction.
func tokensGood(t *testing.T, r *relay) {
	for _, id := range []string{"plain", "with/slash", "with#hash and space", "ünï⛵", strings.Repeat("x", 200), "a\x00b", `quote"s`} {
		b := r.boat(t)
		b.id, b.org = id+b.id, id+b.org
		claims := wire.BoatClaims(b.org, b.id, inAnHour()).With("iat", time.Now().Unix()).With("aud", "relay").With("jti", "x").With("extra", map[string]any{"a": 1})
		ship := b.hello("boat "+id, 2, "boat", claims)
		ship.wantWelcome(2)
		ship.settle()
		v := b.hello("viewer "+id, 2, "viewer", wire.ViewerClaims(b.org, id, b.id, inAnHour()).With("exp", float64(inAnHour().UnixMilli())/1000))
		v.wantWelcome(2)
		v.wantStatus(true)
		tag := ship.wantAttach(1)
		body := r.noise(60)
		ship.sendPayload(tagged(wire.Snapshot, tag, 1, body))
		v.wantPayload(untagged(wire.Snapshot, 1, body))
	}
}

// Revocation is bounded by the lifetime of a token: when it is over, so is the
// connection. The other side is told as always.
func tokensExpire(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	const life = 3 * time.Second // times are whole seconds
	v := b.hello("viewer", 2, "viewer", wire.ViewerClaims(b.org, "v", b.id, time.Now().Add(life)))
	v.wantWelcome(2)
	v.wantStatus(true)
	tag := ship.wantAttach(1)
	o := r.boat(t)
	brief := o.hello("boat", 2, "boat", wire.BoatClaims(o.org, o.id, time.Now().Add(life)))
	brief.wantWelcome(2)
	brief.settle()
	watching, _ := o.watch(brief)

	v.wantEnd()
	ship.wantDetach(tag, 0)
	brief.wantEnd()
	watching.wantStatus(false)
	watching.wantNothing()
	ship.wantNothing()
}
