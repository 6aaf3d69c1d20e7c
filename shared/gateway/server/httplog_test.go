package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestHTTPLogWarnsWhenNothingCanBeAccepted(t *testing.T) {
	var out bytes.Buffer
	l := newHTTPLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	l.Print("http: TLS handshake error from 192.0.2.1:4711: EOF")
	if out.Len() != 0 {
		t.Errorf("a failed handshake is logged: %s", out.String())
	}
	l.Print("http: Accept error: accept tcp [::]:8443: accept4: too many open files; retrying in 5ms")
	if s := out.String(); !strings.Contains(s, "level=WARN") || !strings.Contains(s, "too many open files") {
		t.Errorf("the operator does not hear of it: %q", s)
	}
}
