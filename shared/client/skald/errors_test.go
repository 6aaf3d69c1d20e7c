package skald

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"blindpost/shared/gateway"
)

func TestFinalError(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		final error // nil: try again
	}{
		{"network", errors.New("connection refused"), nil},
		{"replaced", fmt.Errorf("x: %w", &CloseError{Code: gateway.CloseReplaced}), ErrReplaced},
		{"going away", &CloseError{Code: gateway.CloseGoingAway}, nil},
		{"rate limited", &RelayError{Code: CodeRateLimited, Auth: true}, nil},
		{"challenge timeout", &RelayError{Code: CodeChallengeTimeout, Auth: true}, nil},
		{"unknown code", &RelayError{Code: "weather", Auth: true}, nil},
		{"invalid signature", fmt.Errorf("x: %w", &RelayError{Code: CodeInvalidSignature, Auth: true}), &RelayError{}},
		{"bad request", &RelayError{Code: CodeBadRequest, Auth: true}, &RelayError{}},
		{"bad request after admission", &RelayError{Code: CodeBadRequest}, nil},
	} {
		got := finalError(c.err)
		var relay *RelayError
		switch {
		case c.final == nil && got != nil:
			t.Errorf("%s: gives up with %v", c.name, got)
		case c.final == ErrReplaced && !errors.Is(got, ErrReplaced):
			t.Errorf("%s: %v", c.name, got)
		case c.final != nil && c.final != ErrReplaced && !errors.As(got, &relay):
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestRelayErrorQuotesForeignText(t *testing.T) {
	long := make([]byte, 100000)
	err := fmt.Errorf("x: %w", &RelayError{Code: "a\x1b[31m", Message: string(long)})
	if s := err.Error(); len(s) > 2000 || strings.ContainsFunc(s, unicode.IsControl) {
		t.Errorf("%d bytes: %.100s", len(s), s)
	}
	if !IsCode(err, "a\x1b[31m") || IsCode(err, CodeNotFound) || IsCode(nil, CodeNotFound) {
		t.Error("IsCode")
	}
}
