package aelos

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// Parsers of JSON put U+FFFD where there is no Unicode, so that what differs becomes
// the same. What names somebody must not come about like that.

var errMalformed = errors.New("token is malformed")

// wellFormed checks what the parser of tokens does not look at: that the claims are
// Unicode, and that nothing in the header has to be understood (RFC 7515 section
// 4.1.11): we understand no extension.
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

// id reads a claim that names somebody, "" if it names nobody. A lone surrogate in it
// has become U+FFFD.
func id(claims jwt.MapClaims, name string) string {
	s, _ := claims[name].(string)
	if strings.ContainsRune(s, utf8.RuneError) {
		return ""
	}
	return s
}
