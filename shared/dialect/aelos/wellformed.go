package aelos

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// JSON parsers replace invalid Unicode by U+FFFD, so that two different strings become
// the same. Two users or boats must not become one that way.

var errMalformed = errors.New("token is malformed")

// wellFormed checks what the parser of tokens does not: that the claims are UTF-8, and
// that the header names no critical extension (RFC 7515 section 4.1.11), because the
// relay supports none.
func wellFormed(t *jwt.Token) error {
	if _, ok := t.Header["crit"]; ok {
		return errMalformed
	}
	_, rest, _ := strings.Cut(t.Raw, ".")
	body, _, _ := strings.Cut(rest, ".")
	claims, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || !utf8.Valid(claims) {
		return errMalformed
	}
	return nil
}

// id reads a claim that is an id, "" if it is none. U+FFFD in it may have been a lone
// surrogate.
func id(claims jwt.MapClaims, name string) string {
	s, _ := claims[name].(string)
	if strings.ContainsRune(s, utf8.RuneError) {
		return ""
	}
	return s
}
