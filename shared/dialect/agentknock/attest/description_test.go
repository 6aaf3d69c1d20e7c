package attest

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"blindpost/shared/proof/attesttest"
)

func TestDescription(t *testing.T) {
	want := attesttest.Of([]byte("challenge"))
	want.KeptBy = attesttest.StrongBox
	der := want.Encode(t)
	d, err := parseDescription(der)
	if err != nil || d.attestedBy != levelTEE || d.keptBy != levelStrongBox || string(d.challenge) != "challenge" || !d.inHardware() {
		t.Fatalf("%+v, %v", d, err)
	}
	for n := range der {
		if d, err := parseDescription(der[:n]); err == nil {
			t.Errorf("%d bytes of it are taken for %+v", n, d)
		}
	}
	// The fields of it, each with its header: those at the end cannot be missing, nor
	// may others follow.
	fields := [][]byte{{2, 2, 1, 44}, {10, 1, 1}, {2, 2, 1, 44}, {10, 1, 2}, append([]byte{4, 9}, "challenge"...), {4, 0}, want.BySoftware.FullBytes, want.ByHardware.FullBytes}
	sequence := func(fields ...[]byte) []byte {
		body := slices.Concat(fields...)
		return append([]byte{0x30, byte(len(body))}, body...)
	}
	if !bytes.Equal(sequence(fields...), der) {
		t.Fatalf("the fields are not those of %x", der)
	}
	with := func(at int, field ...byte) []byte {
		f := slices.Clone(fields)
		f[at] = field
		return sequence(f...)
	}
	long := slices.Clone(der)
	for name, der := range map[string][]byte{
		"one field less":       sequence(fields[:7]...),
		"one more":             sequence(append(slices.Clone(fields), []byte{5, 0})...),
		"no fields":            sequence(),
		"a set":                append([]byte{0x31}, der[1:]...),
		"behind it":            append(slices.Clone(der), 5, 0),
		"length in two bytes":  slices.Concat([]byte{0x30, 0x81}, long[1:]),
		"length without end":   slices.Concat([]byte{0x30, 0x80}, long[2:], []byte{0, 0}),
		"length beyond memory": {0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 2, 1, 1},
		"version as text":      with(0, 4, 1, 1),
		"version of no bytes":  with(0, 2, 0),
		"version, two zeros":   with(0, 2, 2, 0, 1),
		"huge version":         with(0, append([]byte{2, 9}, bytes.Repeat([]byte{1}, 9)...)...),
		"level as a number":    with(1, 2, 1, 1),
		"level of no bytes":    with(1, 10, 0),
		"level 3":              with(1, 10, 1, 3),
		"level -1":             with(3, 10, 1, 0xff),
		"level 257":            with(1, 10, 2, 1, 1),
		"challenge as bits":    with(4, 3, 2, 0, 1),
		"challenge in parts":   with(4, 0x24, 2, 4, 0),
		"no id":                with(5, 5, 0),
		"list as a set":        with(6, 0x31, 0),
		"list as text":         with(7, 4, 0),
	} {
		if d, err := parseDescription(der); err == nil {
			t.Errorf("%s: taken for %+v", name, d)
		}
	}
	for name, der := range map[string][]byte{"empty lists": with(6, 0x30, 0), "version of KeyMint 4": with(0, 2, 2, 1, 0x90)} {
		if _, err := parseDescription(der); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is taken for a description is all of what was given, and no part of it is one.
func FuzzDescription(f *testing.F) {
	f.Add(attesttest.Of([]byte("challenge")).Encode(f))
	f.Add([]byte{0x30, 0x80, 2, 1, 1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, der []byte) {
		d, err := parseDescription(der)
		if err != nil {
			return
		}
		if !bytes.Contains(der, d.challenge) {
			t.Errorf("a challenge %x out of nothing", d.challenge)
		}
		if _, err := parseDescription(der[:len(der)-1]); err == nil {
			t.Error("without its last byte it is one as well")
		}
		if _, err := parseDescription(append(slices.Clone(der), 0)); err == nil {
			t.Error("with a byte more it is one as well")
		}
	})
}

// Nobody without the maker's keys makes a chain that is good for another challenge: a
// chain that is taken has the certificates of the good one, up to the root.
func FuzzVerify(f *testing.F) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	// The same keys, and signatures, in each of the processes that fuzz.
	var keys []crypto.Signer
	for i := range 4 {
		keys = append(keys, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i)}, ed25519.SeedSize)))
	}
	maker := attesttest.MakerOf(f, now, keys[3])
	roots, err := ParseRoots(maker.PEM())
	if err != nil {
		f.Fatal(err)
	}
	challenge := []byte("challenge")
	made := maker.Make(f, attesttest.Chain{Description: attesttest.Of(challenge).Encode(f), Keys: keys[:3]})
	good := attesttest.Base64(made)
	f.Add(strings.Join(good, "\n"))
	f.Add(strings.Join(good[:3], "\n"))
	f.Add(good[0] + "\n" + good[0])
	f.Add("\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		chain := strings.Split(text, "\n")
		if err := roots.Verify(chain, now, challenge); err != nil {
			return
		}
		for i := range 3 {
			der, err := decodeBase64(chain[i])
			// A signature may have other forms that are as good; what is signed has not.
			if err != nil || !bytes.Equal(signedPart(t, der), signedPart(t, made[i])) {
				t.Errorf("certificate %d is not the maker's: %s", i, base64.StdEncoding.EncodeToString(der))
			}
		}
	})
}

func signedPart(t *testing.T, der []byte) []byte {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c.RawTBSCertificate
}
