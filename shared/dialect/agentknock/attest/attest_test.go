package attest_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/proof/attesttest"
)

const (
	device = "01KJME0000DEV1CE0000000000"
	token  = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
)

var (
	now  = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	want = attesttest.Challenge(device, token)
)

func rootsOf(t testing.TB, makers ...*attesttest.Maker) *attest.Roots {
	t.Helper()
	var all []byte
	for _, m := range makers {
		all = append(all, m.PEM()...)
	}
	r, err := attest.ParseRoots(all)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// only changes one certificate of a chain.
func only(index int, change func(*x509.Certificate)) func(int, *x509.Certificate) {
	return func(i int, c *x509.Certificate) {
		if i == index {
			change(c)
		}
	}
}

func extend(oid asn1.ObjectIdentifier, critical bool, value []byte) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: oid, Critical: critical, Value: value})
	}
}

// provisioned says that the key which attests was fetched over the network.
func provisioned(c *x509.Certificate) {
	extend(attesttest.Provisioning, false, []byte{0xa1, 1, 1, 24, 10})(c)
}

func TestVerify(t *testing.T) {
	maker := attesttest.NewMaker(t, now)
	roots := rootsOf(t, attesttest.NewMaker(t, now), maker)
	good := attesttest.Of(want)
	with := func(change func(*attesttest.KeyDescription)) []byte {
		d := good
		change(&d)
		return d.Encode(t)
	}
	unknown := asn1.ObjectIdentifier{1, 2, 3, 4}
	past := func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) }
	future := func(c *x509.Certificate) { c.NotBefore = now.Add(time.Second) }
	for _, tt := range []struct {
		name string
		made attesttest.Chain
		want error
	}{
		{"good", attesttest.Chain{}, nil},
		{"StrongBox", attesttest.Chain{Description: with(func(d *attesttest.KeyDescription) {
			d.AttestedBy, d.KeptBy = attesttest.StrongBox, attesttest.StrongBox
		})}, nil},
		{"another challenge", attesttest.Chain{Description: with(func(d *attesttest.KeyDescription) { d.Challenge = bytes.Repeat([]byte{7}, 32) })}, attest.ErrChallenge},
		{"no challenge", attesttest.Chain{Description: with(func(d *attesttest.KeyDescription) { d.Challenge = nil })}, attest.ErrChallenge},
		{"half a challenge", attesttest.Chain{Description: with(func(d *attesttest.KeyDescription) { d.Challenge = want[:16] })}, attest.ErrChallenge},
		{"that of another device", attesttest.Chain{Description: attesttest.Of(attesttest.Challenge("01KJME0000DEV1CE0000000001", token)).Encode(t)}, attest.ErrChallenge},
		{"that of another token", attesttest.Chain{Description: attesttest.Of(attesttest.Challenge(device, token[1:]+"A")).Encode(t)}, attest.ErrChallenge},
		{"the challenge as the id", attesttest.Chain{Description: with(func(d *attesttest.KeyDescription) { d.ID, d.Challenge = want, []byte{} })}, attest.ErrChallenge},
		{"attested by software", attesttest.Chain{Description: with(func(d *attesttest.KeyDescription) { d.AttestedBy = attesttest.Software })}, attest.ErrSoftware},
		{"kept by software", attesttest.Chain{Description: with(func(d *attesttest.KeyDescription) { d.KeptBy = attesttest.Software })}, attest.ErrSoftware},
		{"a level that there is not", attesttest.Chain{Description: with(func(d *attesttest.KeyDescription) { d.AttestedBy = 3 })}, attest.ErrDescription},
		{"a level below all", attesttest.Chain{Description: with(func(d *attesttest.KeyDescription) { d.KeptBy = -1 })}, attest.ErrDescription},
		{"cut short", attesttest.Chain{Description: good.Encode(t)[:60]}, attest.ErrDescription},
		{"something behind", attesttest.Chain{Description: append(good.Encode(t), 0)}, attest.ErrDescription},
		{"empty description", attesttest.Chain{Description: []byte{}}, attest.ErrDescription},

		{"critical description", attesttest.Chain{Change: only(0, func(c *x509.Certificate) { c.ExtraExtensions[0].Critical = true })}, nil},
		{"other critical extension", attesttest.Chain{Change: only(0, extend(unknown, true, []byte{5, 0}))}, attest.ErrCritical},
		{"above it", attesttest.Chain{Change: only(1, extend(unknown, true, []byte{5, 0}))}, attest.ErrCritical},
		{"other extension", attesttest.Chain{Change: only(1, extend(unknown, false, []byte{5, 0}))}, nil},
		{"no description", attesttest.Chain{Change: only(0, func(c *x509.Certificate) { c.ExtraExtensions = nil })}, attest.ErrNoKey},
		{"description above it as well", attesttest.Chain{Change: only(1, extend(attesttest.Description, false, good.Encode(t)))}, attest.ErrOtherKey},
		{"description next to the root", attesttest.Chain{Change: only(2, extend(attesttest.Description, false, good.Encode(t)))}, attest.ErrOtherKey},
		{"description only above it", attesttest.Chain{Change: func(i int, c *x509.Certificate) {
			if c.ExtraExtensions = nil; i == 1 {
				extend(attesttest.Description, false, good.Encode(t))(c)
			}
		}}, attest.ErrOtherKey},

		{"expired, as the device says", attesttest.Chain{Change: only(0, past)}, nil},
		{"not yet, as the device says", attesttest.Chain{Change: only(0, future)}, nil},
		{"key of the factory, expired", attesttest.Chain{Change: only(1, past)}, nil},
		{"key of the factory, not yet", attesttest.Chain{Change: only(1, future)}, attest.ErrDate},
		{"fetched", attesttest.Chain{Change: only(1, provisioned)}, nil},
		{"fetched, expired", attesttest.Chain{Change: only(1, func(c *x509.Certificate) { provisioned(c); past(c) })}, attest.ErrDate},
		{"fetched, expired above", attesttest.Chain{Change: func(i int, c *x509.Certificate) {
			switch i {
			case 1:
				provisioned(c)
			case 2:
				past(c)
			}
		}}, attest.ErrDate},
		{"fetched, not yet", attesttest.Chain{Change: only(1, func(c *x509.Certificate) { provisioned(c); future(c) })}, attest.ErrDate},
		{"the device says that it was fetched", attesttest.Chain{Change: func(i int, c *x509.Certificate) {
			switch i {
			case 0:
				provisioned(c)
			case 1:
				past(c)
			}
		}}, nil},

		{"no CA", attesttest.Chain{Change: only(1, func(c *x509.Certificate) { c.IsCA = false })}, attest.ErrIssuer},
		{"nothing about it", attesttest.Chain{Change: only(1, func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid, c.KeyUsage = false, false, 0 })}, nil},
		{"for signatures only", attesttest.Chain{Change: only(1, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature })}, attest.ErrIssuer},
		{"path of none", attesttest.Chain{Change: only(1, func(c *x509.Certificate) { c.MaxPathLenZero = true })}, nil},
		{"path that is too long", attesttest.Chain{Change: only(2, func(c *x509.Certificate) { c.MaxPathLenZero = true })}, attest.ErrIssuer},
		{"path of one", attesttest.Chain{Change: only(2, func(c *x509.Certificate) { c.MaxPathLen = 1 })}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.made.Description == nil {
				tt.made.Description = good.Encode(t)
			}
			chain := maker.Make(t, tt.made)
			if err := roots.Verify(attesttest.Base64(chain), now, want); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			// Nothing changes where the device leaves the root out.
			if err := roots.Verify(attesttest.Base64(chain[:3]), now, want); !errors.Is(err, tt.want) {
				t.Errorf("without the root: got %v, want %v", err, tt.want)
			}
		})
	}
}

// What can be done to a chain without the keys of the maker.
func TestForgedChains(t *testing.T) {
	maker, thief := attesttest.NewMaker(t, now), attesttest.NewMaker(t, now)
	roots := rootsOf(t, maker)
	der := attesttest.Of(want).Encode(t)
	keys := []crypto.Signer{attesttest.NewKey(t), attesttest.NewKey(t), attesttest.NewKey(t)}
	good := maker.Make(t, attesttest.Chain{Description: der, Keys: keys})
	other := maker.Make(t, attesttest.Chain{Description: attesttest.Of([]byte("of something else")).Encode(t), Keys: keys})
	foreign := thief.Make(t, attesttest.Chain{Description: der})

	// The key that was attested signs what it likes.
	leaf := parsed(t, other[0])
	own := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: now.AddDate(1, 0, 0), ExtraExtensions: []pkix.Extension{{Id: attesttest.Description, Value: der}}}
	extended := attesttest.Sign(t, own, leaf, attesttest.NewKey(t).Public(), keys[0])
	// Everybody has the root's certificate, and can put its key into one of his own.
	root := parsed(t, good[3])
	posing := attesttest.Sign(t, own, own, root.PublicKey, keys[0])
	aside := attesttest.Sign(t, own, own, keys[0].Public(), keys[0])

	flipped := slices.Clone(good[0])
	flipped[len(flipped)-1] ^= 1
	inside := bytes.Clone(good[0])
	inside[bytes.Index(inside, want)] ^= 1

	join := func(first []byte, rest ...[]byte) [][]byte { return append([][]byte{first}, rest...) }
	for _, tt := range []struct {
		name  string
		chain [][]byte
		want  error
	}{
		{"good", good, nil},
		{"root of somebody else", foreign, attest.ErrRoot},
		{"that without its root", foreign[:3], attest.ErrRoot},
		{"our root behind another chain", join(foreign[0], foreign[1], foreign[2], good[3]), attest.ErrSignature},
		{"our chain behind another leaf", join(foreign[0], good[1:]...), attest.ErrSignature},
		{"extended by the attested key", join(extended, other...), attest.ErrOtherKey},
		{"that without the attested one", join(extended, other[1:]...), attest.ErrSignature},
		{"signed by itself", join(aside), attest.ErrRoot},
		{"key of the root as the attested one", join(posing), attest.ErrRoot},
		{"that with the root", join(posing, good[3]), attest.ErrSignature},
		{"leaf alone", good[:1], attest.ErrRoot},
		{"gap", join(good[0], good[2:]...), attest.ErrSignature},
		{"turned around", join(good[3], good[2], good[1], good[0]), attest.ErrOtherKey},
		{"goes on behind the root", join(good[0], good[1], good[2], good[3], foreign[3]), attest.ErrRoot},
		{"root twice", join(good[0], good[1], good[2], good[3], good[3]), attest.ErrRoot},
		{"signature broken", join(flipped, good[1:]...), attest.ErrSignature},
		{"challenge changed", join(inside, good[1:]...), attest.ErrChallenge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := roots.Verify(attesttest.Base64(tt.chain), now, want); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	if err := roots.Verify(attesttest.Base64(join(inside, good[1:]...)), now, challengeIn(t, inside)); !errors.Is(err, attest.ErrSignature) {
		t.Errorf("for the changed challenge: %v", err)
	}
	var none *attest.Roots
	for _, chain := range [][][]byte{good, good[:3]} {
		if err := none.Verify(attesttest.Base64(chain), now, want); !errors.Is(err, attest.ErrRoot) {
			t.Errorf("without any roots: %v", err)
		}
	}
	if err := roots.Verify(attesttest.Base64(good), now); !errors.Is(err, attest.ErrChallenge) {
		t.Errorf("without any challenge: %v", err)
	}
}

func parsed(t *testing.T, der []byte) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func challengeIn(t *testing.T, der []byte) []byte {
	t.Helper()
	for _, e := range parsed(t, der).Extensions {
		if e.Id.Equal(attesttest.Description) {
			var d attesttest.KeyDescription
			if _, err := asn1.Unmarshal(e.Value, &d); err != nil {
				t.Fatal(err)
			}
			return d.Challenge
		}
	}
	t.Fatal("no description")
	return nil
}

// The certificate of a root expires and is renewed; its key stays. A device sends the
// one that it was made with.
func TestRootIsItsKey(t *testing.T) {
	maker := attesttest.NewMaker(t, now)
	chain := maker.Make(t, attesttest.Chain{Description: attesttest.Of(want).Encode(t)})
	chain[3] = maker.Root(t, now.AddDate(-10, 0, 0), now.AddDate(0, -6, 0))
	if err := rootsOf(t, maker).Verify(attesttest.Base64(chain), now, want); err != nil {
		t.Error(err)
	}
}

func TestEncodings(t *testing.T) {
	maker := attesttest.NewMaker(t, now)
	roots := rootsOf(t, maker)
	var chain [][]byte
	for range 50 { // until it has what the alphabets and the padding differ in
		chain = maker.Make(t, attesttest.Chain{Description: attesttest.Of(want).Encode(t)})
		if text := base64.StdEncoding.EncodeToString(chain[0]); strings.ContainsAny(text, "+/") && strings.HasSuffix(text, "=") {
			break
		}
	}
	encode := func(e *base64.Encoding) []string {
		var all []string
		for _, der := range chain {
			all = append(all, e.EncodeToString(der))
		}
		return all
	}
	good := encode(base64.StdEncoding)
	first := func(text string) []string { return append([]string{text}, good[1:]...) }
	body := strings.TrimRight(good[0], "=")
	loose := body[:len(body)-1] + string(body[len(body)-1]+1) + good[0][len(body):]
	for name, tt := range map[string]struct {
		chain []string
		want  error
	}{
		"loose bits":           {first(loose), attest.ErrEncoding},
		"standard":             {good, nil},
		"standard, no padding": {encode(base64.RawStdEncoding), nil},
		"URL":                  {encode(base64.URLEncoding), nil},
		"URL, no padding":      {encode(base64.RawURLEncoding), nil},
		"both alphabets":       {first(strings.Replace(good[0], "/", "_", 1) + "+"), attest.ErrEncoding},
		"no base64":            {first("!!" + good[0]), attest.ErrEncoding},
		"PEM":                  {first("-----BEGIN CERTIFICATE-----\n" + good[0]), attest.ErrEncoding},
		"hexadecimal":          {first("3082"), attest.ErrEncoding},
		"cut":                  {first(good[0][:len(good[0])/2/4*4]), attest.ErrEncoding},
		"something behind":     {first(base64.StdEncoding.EncodeToString(append(bytes.Clone(chain[0]), 0))), attest.ErrEncoding},
		"empty":                {first(""), attest.ErrEncoding},
		"too much padding":     {first(strings.TrimRight(good[0], "=") + "==="), attest.ErrEncoding},
		"no certificates":      {nil, attest.ErrSize},
		"a hundred":            {slices.Repeat(good, 25), attest.ErrSize},
		"eleven":               {slices.Repeat(good[:1], 11), attest.ErrSize},
		"a large one":          {first(strings.Repeat("A", 16<<10+1)), attest.ErrSize},
	} {
		if err := roots.Verify(tt.chain, now, want); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
}
