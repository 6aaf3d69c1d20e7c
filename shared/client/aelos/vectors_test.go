package aelos

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The vectors of RFC 5869, appendix A, for SHA-256.
func TestHKDFVectors(t *testing.T) {
	for name, c := range map[string]struct {
		ikm, salt, info, prk, okm string
		length                    int
	}{
		"A.1": {
			strings.Repeat("0b", 22), "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9",
			"077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
			"3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865", 42,
		},
		"A.2": {
			"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f",
			"606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
			"b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
			"06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
			"b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87", 82,
		},
		"A.3": {
			strings.Repeat("0b", 22), "", "",
			"19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
			"8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8", 42,
		},
	} {
		prk, err := hkdf.Extract(sha256.New, unhex(t, c.ikm), unhex(t, c.salt))
		if err != nil || !bytes.Equal(prk, unhex(t, c.prk)) {
			t.Errorf("%s: prk is %x, %v", name, prk, err)
		}
		okm, err := hkdf.Expand(sha256.New, prk, string(unhex(t, c.info)), c.length)
		if err != nil || !bytes.Equal(okm, unhex(t, c.okm)) {
			t.Errorf("%s: okm is %x, %v", name, okm, err)
		}
	}
}

// recorded is a whole session as libsodium makes it.
type recorded struct {
	AppStaticSecret     string   `json:"app_static_secret"`
	AppStaticPublic     string   `json:"app_static_public"`
	BoatStaticSecret    string   `json:"boat_static_secret"`
	BoatStaticPublic    string   `json:"boat_static_public"`
	AppEphemeralSecret  string   `json:"app_ephemeral_secret"`
	BoatEphemeralSecret string   `json:"boat_ephemeral_secret"`
	Nonces              []string `json:"nonces"`
	Seed                string   `json:"seed"`
	Hs1E                string   `json:"hs1_e"`
	Hs2E                string   `json:"hs2_e"`
	Hs2S                string   `json:"hs2_s"`
	I2R                 string   `json:"i2r"`
	R2I                 string   `json:"r2i"`
	Frames              []struct {
		Sender                string
		Type                  Type
		Counter               uint64
		Plaintext, Ciphertext string
	}
}

func readRecorded(t *testing.T) recorded {
	t.Helper()
	data, err := os.ReadFile("testdata/session.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// drawn is a source of randomness that gives out what was drawn when the
// vectors were recorded.
func drawn(t *testing.T, parts ...string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	for _, p := range parts {
		b.Write(unhex(t, p))
	}
	return &b
}

// A session, drawn alike, is byte for byte what libsodium makes of it: both
// handshake frames, the two keys by their labels, and payloads of all types.
func TestSessionVectors(t *testing.T) {
	r := readRecorded(t)
	keys := func(secret, public string) KeyPair {
		t.Helper()
		k, err := GenerateKeyPair(drawn(t, secret))
		if err != nil || !bytes.Equal(k.Public[:], unhex(t, public)) {
			t.Fatalf("the public key is %x, %v", k.Public, err)
		}
		return k
	}
	app, boat := keys(r.AppStaticSecret, r.AppStaticPublic), keys(r.BoatStaticSecret, r.BoatStaticPublic)
	same := func(what, got, want string) {
		t.Helper()
		if b, err := base64.StdEncoding.DecodeString(got); err != nil || !bytes.Equal(b, unhex(t, want)) {
			t.Fatalf("%s is %x, %v", what, b, err)
		}
	}
	begun, e, err := Initiate(drawn(t, r.AppEphemeralSecret, r.Nonces[0]), app, boat.Public)
	if err != nil {
		t.Fatal(err)
	}
	same("hs1.e", e, r.Hs1E)
	e, s, boatSession, err := Respond(drawn(t, r.BoatEphemeralSecret, r.Seed, r.Nonces[1], r.Nonces[2]), boat, app.Public, e)
	if err != nil {
		t.Fatal(err)
	}
	same("hs2.e", e, r.Hs2E)
	same("hs2.s", s, r.Hs2S)
	appSession, err := begun.Finish(e, s)
	if err != nil {
		t.Fatal(err)
	}
	boatEphemeral := keys(r.BoatEphemeralSecret, hex.EncodeToString(publicOf(t, r.BoatEphemeralSecret)))
	i2r, r2i, err := deriveKeys([32]byte(unhex(t, r.Seed)), begun.ephemeral.Public, boatEphemeral.Public, app.Public, boat.Public)
	if err != nil || !bytes.Equal(i2r, unhex(t, r.I2R)) || !bytes.Equal(r2i, unhex(t, r.R2I)) {
		t.Fatalf("keys are %x and %x, %v", i2r, r2i, err)
	}
	for _, f := range r.Frames {
		from, to := boatSession, appSession
		if f.Sender == "app" {
			from, to = appSession, boatSession
		}
		sealed, err := from.sealAt(nil, f.Type, f.Counter, unhex(t, f.Plaintext))
		if err != nil || !bytes.Equal(sealed, unhex(t, f.Ciphertext)) {
			t.Errorf("type %d is sealed as %x, %v", f.Type, sealed, err)
		}
		if got, err := to.Open(nil, f.Type, f.Counter, sealed); err != nil || !bytes.Equal(got, unhex(t, f.Plaintext)) {
			t.Errorf("type %d opens as %q, %v", f.Type, got, err)
		}
	}
}

func publicOf(t *testing.T, secret string) []byte {
	t.Helper()
	k, err := GenerateKeyPair(drawn(t, secret))
	if err != nil {
		t.Fatal(err)
	}
	return k.Public[:]
}
