package aelos

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// MinSecret is the length in bytes of the shortest secret that HS256 allows (RFC
// 7518 section 3.2).
const MinSecret = sha256.Size

// maxToken bounds what is parsed before its signature is checked.
const maxToken = 8 << 10

// maxExpiry is the end of the year 9999.
const maxExpiry = 253402300800

// errRefused says that a token does not admit its bearer. It never says why, because a
// peer must not learn which check has failed.
var errRefused = errors.New("token does not admit")

// admission is what a token allows.
type admission struct {
	group   string
	sub     string // the user, see subOf
	ctl     bool
	expires time.Time
}

// admit checks a token for a role (section 6). errRefused means that the token does not
// admit; any other error, that it could not be checked.
func (d *Dialect) admit(ctx context.Context, role, token string) (admission, error) {
	keys, err := d.keys(ctx)
	if err != nil {
		return admission{}, err
	}
	if len(token) > maxToken {
		return admission{}, errRefused
	}
	claims := jwt.MapClaims{}
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(d.lim().Leeway),
		jwt.WithTimeFunc(d.core.Now),
		jwt.WithStrictDecoding(),
	)
	_, err = parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) { return keys, wellFormed(t) })
	if err != nil {
		return admission{}, errRefused
	}
	return d.admissionOf(role, claims)
}

// keys are the secrets that are long enough.
func (d *Dialect) keys(ctx context.Context) (jwt.VerificationKeySet, error) {
	secrets, err := d.secrets(ctx)
	if err == nil {
		err = CheckAnySecret(secrets)
	}
	if err != nil {
		return jwt.VerificationKeySet{}, fmt.Errorf("failed to read the token secrets: %w", err)
	}
	var set jwt.VerificationKeySet
	for _, s := range secrets {
		if len(s) >= MinSecret { // one bad secret during a rotation must not refuse all tokens
			set.Keys = append(set.Keys, []byte(s))
		}
	}
	return set, nil
}

// CheckAnySecret checks that at least one secret can be used. It is for processes that
// start often, as functions do, and have no earlier good secrets to fall back to.
func CheckAnySecret(secrets []string) error {
	if slices.ContainsFunc(secrets, func(s string) bool { return len(s) >= MinSecret }) {
		return nil
	}
	return fmt.Errorf("no token secret has %d bytes", MinSecret)
}

// CheckSecrets checks that there is a secret and that none is too short.
func CheckSecrets(secrets []string) error {
	if slices.ContainsFunc(secrets, func(s string) bool { return len(s) < MinSecret }) {
		return fmt.Errorf("a token secret is shorter than %d bytes", MinSecret)
	}
	if len(secrets) == 0 {
		return errors.New("there is no token secret")
	}
	return nil
}

// admissionOf reads the claims of a token that is signed and has not expired.
func (d *Dialect) admissionOf(role string, claims jwt.MapClaims) (admission, error) {
	sub, org := id(claims, "sub"), id(claims, "org")
	exp, ok := claims["exp"].(float64)
	if sub == "" || org == "" || id(claims, "role") != role || !ok || exp <= 0 || exp >= maxExpiry {
		return admission{}, errRefused
	}
	// The time of issue does not matter, but it has to be a time.
	if _, err := claims.GetIssuedAt(); err != nil {
		return admission{}, errRefused
	}
	a := admission{expires: time.Unix(int64(exp), 0)}
	if life := d.lim().MaxTokenLife; life > 0 && a.expires.After(d.core.Now().Add(life+d.lim().Leeway)) {
		return admission{}, errRefused
	}
	_, named := claims["boat"]
	switch role {
	case roleBoat:
		// sub and boat could name two boats, and only one of them would be its own.
		if named {
			return admission{}, errRefused
		}
		a.group = groupOf(org, sub)
	case roleViewer:
		boat := id(claims, "boat")
		if boat == "" {
			return admission{}, errRefused
		}
		a.group = groupOf(org, boat)
		a.ctl = d.controller.match(claims)
	default:
		return admission{}, errRefused
	}
	a.sub = subOf(a.group, sub)
	return a, nil
}

// groupOf names the group of a boat. Two organisations may choose the same id for a boat,
// so both ids name it. They may be of any form and length.
func groupOf(org, boat string) string { return Partition + digest(org, boat) }

// subOf is an id of a user within the group of a boat that does not reveal the claim sub.
func subOf(group, sub string) string { return digest(group, sub)[:subLen] }

func digest(parts ...string) string {
	h := sha256.New()
	for _, s := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(s)))
		h.Write(length[:])
		h.Write([]byte(s))
	}
	return hex.EncodeToString(h.Sum(nil))
}
