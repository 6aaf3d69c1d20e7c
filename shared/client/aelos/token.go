package aelos

import (
	"fmt"
	"maps"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Claims are the claims of a token.
type Claims map[string]any

// BoatClaims are the claims of a boat (section 6).
func BoatClaims(org, boat string, expires time.Time) Claims {
	return Claims{"sub": boat, "org": org, "role": "boat", "exp": expires.Unix()}
}

// ViewerClaims are the claims of a viewer that may watch.
func ViewerClaims(org, user, boat string, expires time.Time) Claims {
	return Claims{"sub": user, "boat": boat, "org": org, "role": "viewer", "exp": expires.Unix()}
}

// ControllerClaims are the claims of a viewer that may also send commands. The operator
// configures how the relay recognises one; this is our default.
func ControllerClaims(org, user, boat string, expires time.Time) Claims {
	c := ViewerClaims(org, user, boat, expires)
	c["ctl"] = true
	return c
}

// With returns the claims with one changed; nil removes it.
func (c Claims) With(name string, value any) Claims {
	out := maps.Clone(c)
	out[name] = value
	if value == nil {
		delete(out, name)
	}
	return out
}

// Mint makes a token as the minter does: HS256 with the shared secret.
func Mint(secret []byte, c Claims) (string, error) {
	return MintWith(jwt.SigningMethodHS256, secret, c)
}

// MintWith makes a token with another algorithm, for tests of refusals.
func MintWith(method jwt.SigningMethod, key any, c Claims) (string, error) {
	token, err := jwt.NewWithClaims(method, jwt.MapClaims(c)).SignedString(key)
	if err != nil {
		return "", fmt.Errorf("failed to sign a token: %w", err)
	}
	return token, nil
}
