package aelos

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// forge makes a token out of a header and a payload as they are, signed with HS256.
func forge(t testing.TB, secret, header, payload string) string {
	t.Helper()
	signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	sig, err := jwt.SigningMethodHS256.Sign(signed, []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func claimsText(t testing.TB, c jwt.MapClaims) string {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const hs256 = `{"alg":"HS256","typ":"JWT"}`

func TestTokens(t *testing.T) {
	boat, viewer := boatClaims("org", "boat"), viewerClaims("org", "boat")
	sign := func(m jwt.SigningMethod, key any, c jwt.MapClaims) string {
		s, err := jwt.NewWithClaims(m, c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	good := mint(t, secretA, viewer)
	head, rest, _ := strings.Cut(good, ".")
	body, sig, _ := strings.Cut(rest, ".")
	now := time.Now().Unix()
	for name, tt := range map[string]struct {
		role, token string
		ok          bool
	}{
		"boat":                       {roleBoat, mint(t, secretA, boat), true},
		"viewer":                     {roleViewer, good, true},
		"the second secret":          {roleViewer, mint(t, secretB, viewer), true},
		"more claims":                {roleViewer, mint(t, secretA, with(viewer, "x", []int{1})), true},
		"exp with a fraction":        {roleViewer, forge(t, secretA, hs256, `{"sub":"u","boat":"b","org":"o","role":"viewer","exp":`+jsonNumber(now+60)+`.5}`), true},
		"no typ":                     {roleViewer, forge(t, secretA, `{"alg":"HS256"}`, claimsText(t, viewer)), true},
		"boat as viewer":             {roleViewer, mint(t, secretA, boat), false},
		"crit":                       {roleViewer, forge(t, secretA, `{"alg":"HS256","crit":["exp"]}`, claimsText(t, viewer)), false},
		"empty crit":                 {roleViewer, forge(t, secretA, `{"alg":"HS256","crit":[]}`, claimsText(t, viewer)), false},
		"crit null":                  {roleViewer, forge(t, secretA, `{"alg":"HS256","crit":null}`, claimsText(t, viewer)), false},
		"iat":                        {roleViewer, mint(t, secretA, with(viewer, "iat", now)), true},
		"iat as a text":              {roleViewer, mint(t, secretA, with(viewer, "iat", "now")), false},
		"iat null":                   {roleViewer, forge(t, secretA, hs256, `{"sub":"u","boat":"b","org":"o","role":"viewer","iat":null,"exp":`+jsonNumber(now+60)+`}`), false},
		"nbf as a text":              {roleViewer, mint(t, secretA, with(viewer, "nbf", "now")), false},
		"nbf as a list":              {roleViewer, mint(t, secretA, with(viewer, "nbf", []int{1})), false},
		"org of half a character":    {roleBoat, forge(t, secretA, hs256, `{"sub":"b","org":"o\ud800","role":"boat","exp":`+jsonNumber(now+60)+`}`), false},
		"org of raw bytes":           {roleBoat, forge(t, secretA, hs256, `{"sub":"b","org":"o`+"\xff"+`","role":"boat","exp":`+jsonNumber(now+60)+`}`), false},
		"boat of half a character":   {roleViewer, forge(t, secretA, hs256, `{"sub":"u","boat":"\udc00","org":"o","role":"viewer","exp":`+jsonNumber(now+60)+`}`), false},
		"sub of half a character":    {roleViewer, forge(t, secretA, hs256, `{"sub":"\udc00","boat":"b","org":"o","role":"viewer","exp":`+jsonNumber(now+60)+`}`), false},
		"claim that is no Unicode":   {roleViewer, forge(t, secretA, hs256, `{"sub":"u","boat":"b","x":"`+"\xff"+`","org":"o","role":"viewer","exp":`+jsonNumber(now+60)+`}`), false},
		"org in other characters":    {roleBoat, forge(t, secretA, hs256, `{"sub":"b","org":"é\ud83d\ude00","role":"boat","exp":`+jsonNumber(now+60)+`}`), true},
		"viewer as boat":             {roleBoat, good, false},
		"a role that there is not":   {"admin", mint(t, secretA, with(viewer, "role", "admin")), false},
		"no role":                    {roleViewer, mint(t, secretA, with(viewer, "role", nil)), false},
		"role as a list":             {roleViewer, mint(t, secretA, with(viewer, "role", []string{"viewer"})), false},
		"Role":                       {roleViewer, mint(t, secretA, with(with(viewer, "role", nil), "Role", "viewer")), false},
		"boat with a boat claim":     {roleBoat, mint(t, secretA, with(boat, "boat", "boat")), false},
		"boat with another's claim":  {roleBoat, mint(t, secretA, with(boat, "boat", "other")), false},
		"boat with an empty claim":   {roleBoat, mint(t, secretA, with(boat, "boat", "")), false},
		"boat with a null claim":     {roleBoat, forge(t, secretA, hs256, `{"sub":"b","boat":null,"org":"o","role":"boat","exp":`+jsonNumber(now+60)+`}`), false},
		"viewer without boat":        {roleViewer, mint(t, secretA, with(viewer, "boat", nil)), false},
		"viewer with boat 7":         {roleViewer, mint(t, secretA, with(viewer, "boat", 7)), false},
		"viewer with an empty boat":  {roleViewer, mint(t, secretA, with(viewer, "boat", "")), false},
		"no org":                     {roleBoat, mint(t, secretA, with(boat, "org", nil)), false},
		"empty org":                  {roleBoat, mint(t, secretA, with(boat, "org", "")), false},
		"org 7":                      {roleBoat, mint(t, secretA, with(boat, "org", 7)), false},
		"no sub":                     {roleBoat, mint(t, secretA, with(boat, "sub", nil)), false},
		"viewer without sub":         {roleViewer, mint(t, secretA, with(viewer, "sub", nil)), false},
		"no exp":                     {roleViewer, mint(t, secretA, with(viewer, "exp", nil)), false},
		"null exp":                   {roleViewer, forge(t, secretA, hs256, `{"sub":"u","boat":"b","org":"o","role":"viewer","exp":null}`), false},
		"exp as text":                {roleViewer, mint(t, secretA, with(viewer, "exp", "9999999999")), false},
		"exp 0":                      {roleViewer, mint(t, secretA, with(viewer, "exp", 0)), false},
		"negative exp":               {roleViewer, mint(t, secretA, with(viewer, "exp", -5)), false},
		"exp for ever":               {roleViewer, mint(t, secretA, with(viewer, "exp", 1e300)), false},
		"exp beyond what is a time":  {roleViewer, mint(t, secretA, with(viewer, "exp", float64(maxExpiry))), false},
		"expired":                    {roleViewer, mint(t, secretA, with(viewer, "exp", now-1)), false},
		"expired long ago":           {roleViewer, mint(t, secretA, with(viewer, "exp", 1)), false},
		"not yet valid":              {roleViewer, mint(t, secretA, with(viewer, "nbf", now+600)), false},
		"another secret":             {roleViewer, mint(t, secretX, viewer), false},
		"HS384":                      {roleViewer, sign(jwt.SigningMethodHS384, []byte(secretA), viewer), false},
		"HS512":                      {roleViewer, sign(jwt.SigningMethodHS512, []byte(secretA), viewer), false},
		"none":                       {roleViewer, sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, viewer), false},
		"none with a signature":      {roleViewer, forge(t, secretA, `{"alg":"none"}`, claimsText(t, viewer)), false},
		"None":                       {roleViewer, forge(t, secretA, `{"alg":"None"}`, claimsText(t, viewer)), false},
		"hs256 in small letters":     {roleViewer, forge(t, secretA, `{"alg":"hs256"}`, claimsText(t, viewer)), false},
		"RS256":                      {roleViewer, forge(t, secretA, `{"alg":"RS256"}`, claimsText(t, viewer)), false},
		"no alg":                     {roleViewer, forge(t, secretA, `{}`, claimsText(t, viewer)), false},
		"unsigned":                   {roleViewer, head + "." + body + ".", false},
		"without the last part":      {roleViewer, head + "." + body, false},
		"a part too many":            {roleViewer, good + ".x", false},
		"claims swapped":             {roleViewer, head + "." + strings.Split(mint(t, secretA, with(viewer, "boat", "other")), ".")[1] + "." + sig, false},
		"a bit of the signature":     {roleViewer, good[:len(good)-1] + flip(good[len(good)-1]), false},
		"padded":                     {roleViewer, good + "=", false},
		"with spaces":                {roleViewer, " " + good, false},
		"claims are a list":          {roleViewer, forge(t, secretA, hs256, `[]`), false},
		"claims are null":            {roleViewer, forge(t, secretA, hs256, `null`), false},
		"empty":                      {roleViewer, "", false},
		"dots":                       {roleViewer, "..", false},
		"no token at all":            {roleViewer, "swordfish", false},
		"huge":                       {roleViewer, mint(t, secretA, with(viewer, "x", strings.Repeat("x", maxToken))), false},
		"secret as key id":           {roleViewer, forge(t, "", `{"alg":"HS256","kid":"../../dev/null"}`, claimsText(t, viewer)), false},
		"role of a viewer in a boat": {roleBoat, mint(t, secretA, with(with(boat, "role", "viewer"), "boat", "x")), false},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				time.Sleep(time.Until(time.Unix(now, 0))) // a bubble begins in 2000
				l := w.dial()
				l.say(`{"t":"hello","proto":2,"role":%q,"token":%q}`, tt.role, tt.token)
				if tt.role == "admin" {
					return // refused for that already
				}
				got := l.got()
				if tt.ok && (len(got) == 0 || got[0] != welcome2) {
					t.Fatalf("not let in: %q", got)
				}
				if !tt.ok {
					if len(got) != 1 || got[0] != noAdmit {
						t.Fatalf("got %q", got)
					}
					l.wantClosed(gateway.ClosePolicy)
				}
			})
		})
	}
}

func jsonNumber(n int64) string { b, _ := json.Marshal(n); return string(b) }

// flip changes the last letter of base64 by a bit that counts.
func flip(c byte) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(letters[(strings.IndexByte(letters, c)+16)%64])
}

func TestClockLeeway(t *testing.T) {
	for _, tt := range []struct {
		exp, nbf time.Duration
		ok       bool
	}{
		{-9 * time.Second, -time.Hour, true},
		{-10 * time.Second, -time.Hour, false},
		{time.Hour, 10 * time.Second, true},
		{time.Hour, 12 * time.Second, false},
	} {
		story(t, func(w *world) {
			c := with(with(viewerClaims("org", "boat"), "exp", time.Now().Add(tt.exp).Unix()), "nbf", time.Now().Add(tt.nbf).Unix())
			l := w.dial().hello("viewer", 2, c)
			if got := l.got(); (got[0] == welcome2) != tt.ok {
				t.Errorf("%+v: %q", tt, got)
			}
			if tt.ok && tt.exp < 0 {
				time.Sleep(tt.exp + 10*time.Second + time.Millisecond)
				l.wantClosed(gateway.ClosePolicy)
			}
		}, func(o *worldOptions) { o.limits = func(l *Limits) { l.Leeway = 10 * time.Second } })
	}
}

// During a rotation two secrets count, then one. One bad secret does not refuse all tokens,
// and without any secret no token is accepted.
func TestSecrets(t *testing.T) {
	long := strings.Repeat("x", MinSecret)
	for _, tt := range []struct {
		secrets []string
		err     error
		want    error // nil: admitted
	}{
		{[]string{long}, nil, nil},
		{[]string{secretX, long}, nil, nil},
		{[]string{"short", long}, nil, nil},
		{[]string{secretX}, nil, errRefused},
		{[]string{long[1:]}, nil, errAny},
		{nil, nil, errAny},
		{nil, errors.New("no answer"), errAny},
	} {
		story(t, func(w *world) {
			d := w.nodes[0].d
			d.secrets = func(context.Context) ([]string, error) { return tt.secrets, tt.err }
			_, err := d.admit(context.Background(), roleBoat, mint(t, long, boatClaims("o", "b")))
			ok := errors.Is(err, tt.want)
			if tt.want == errAny {
				ok = err != nil && !errors.Is(err, errRefused)
			}
			if !ok {
				t.Errorf("%v, %v: %v", tt.secrets, tt.err, err)
			}
			if err != nil && strings.Contains(err.Error(), long[1:]) {
				t.Errorf("error tells the secret: %v", err)
			}
		})
	}
	if CheckSecrets([]string{secretA, "short"}) == nil || CheckSecrets(nil) == nil || CheckSecrets([]string{secretA}) != nil {
		t.Error("CheckSecrets")
	}
}

var errAny = errors.New("any")

func TestController(t *testing.T) {
	for _, tt := range []struct {
		setting, claims string
		want            bool
	}{
		{"ctl=true", `{"ctl":true}`, true},
		{"ctl=true", `{"ctl":"true"}`, false},
		{"ctl=true", `{"ctl":1}`, false},
		{"ctl=true", `{"ctl":[true]}`, true},
		{"ctl=true", `{"ctl":[[true]]}`, false},
		{"ctl=true", `{"ctl":{"ctl":true}}`, false},
		{"ctl=true", `{"ctl":null}`, false},
		{"ctl=true", `{"CTL":true}`, false},
		{"ctl=true", `{}`, false},
		{"roles=controller", `{"roles":["viewer","controller"]}`, true},
		{"roles=controller", `{"roles":"controller"}`, true},
		{"roles=controller", `{"roles":"controllers"}`, false},
		{"level=3", `{"level":3}`, true},
		{"level=3", `{"level":3.5}`, false},
		{"level=3", `{"level":"3"}`, false},
		{"scope=a=b", `{"scope":"a=b"}`, true},
		{`x={"a":1}`, `{"x":{"a":1}}`, false},
	} {
		c, err := ParseController(tt.setting)
		if err != nil || c.String() != tt.setting {
			t.Fatalf("%s: %v, %v", tt.setting, c, err)
		}
		var claims map[string]any
		if err := json.Unmarshal([]byte(tt.claims), &claims); err != nil {
			t.Fatal(err)
		}
		if got := c.match(claims); got != tt.want {
			t.Errorf("%s and %s: %v", tt.setting, tt.claims, got)
		}
	}
	for _, bad := range []string{"", "ctl", "ctl=", "=true", "role=viewer", "exp=1", "sub=x"} {
		if c, err := ParseController(bad); err == nil {
			t.Errorf("%q gives %v", bad, c)
		}
	}
	if c, _ := ParseController("ctl=true"); c != DefaultController {
		t.Error("ctl=true is not the default")
	}
	if claims := maps.Clone(boatClaims("o", "b")); DefaultController.match(claims) {
		t.Error("a token without the claim controls")
	}
}

func TestPaths(t *testing.T) {
	for path, ok := range map[string]bool{
		"/relay": true, "/a/b": true, "": false, "/": false, "relay": false, "/v1/ws": false, "/v1/x": false,
		"/healthz": false, "/readyz": false, "/a?b": false, "/a b": false, "/a%20": false, "/a#b": false,
	} {
		if err := CheckPath(path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
	story(t, func(w *world) {
		for path, want := range map[string]bool{Path: true, "/relay": true, "/v1/ws": false, "": false, "/v1/aelos/": false} {
			if got := w.nodes[0].d.Serves(path); got != want {
				t.Errorf("%q is served: %v", path, got)
			}
		}
	}, func(o *worldOptions) { o.path = "/relay" })
	story(t, func(w *world) {
		if w.nodes[0].d.Serves("") {
			t.Error("no path is served")
		}
	})
}

func FuzzToken(f *testing.F) {
	f.Add(roleViewer, `{"alg":"HS256"}`, `{"sub":"u","boat":"b","org":"o","role":"viewer","exp":9999999999}`)
	f.Add(roleBoat, `{"alg":"HS256"}`, `{"sub":"b","org":"o","role":"boat","exp":1e9}`)
	f.Add(roleBoat, `{"alg":"none"}`, `{}`)
	core := relay.New(relay.Options{Now: time.Now, Random: rand.Reader})
	d := New(core, Options{Limits: DefaultLimits(), Secrets: func(context.Context) ([]string, error) { return []string{secretA}, nil }})
	f.Fuzz(func(t *testing.T, role, header, payload string) {
		a, err := d.admit(context.Background(), role, forge(t, secretA, header, payload))
		if err != nil {
			if !errors.Is(err, errRefused) || a != (admission{}) {
				t.Errorf("%+v, %v", a, err)
			}
			return
		}
		var h, c map[string]any
		if json.Unmarshal([]byte(header), &h) != nil || h["alg"] != "HS256" || json.Unmarshal([]byte(payload), &c) != nil {
			t.Fatal("admitted what is no token")
		}
		if a.group == "" || !a.expires.After(time.Now().Add(-time.Second)) || c["role"] != role {
			t.Errorf("admitted with %+v", a)
		}
		if _, both := c["boat"]; both == (role == roleBoat) {
			t.Error("the boat claim is not as it must be")
		}
	})
}
