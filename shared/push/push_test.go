package push_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"blindpost/shared/push"
)

var secret = push.Notification{
	Token:    "token-secret",
	Platform: push.IOS,
	Payload:  []byte("payload-secret"),
	Kind:     push.Content,
}

func wantNoSecret(t *testing.T, what, s string) {
	t.Helper()
	// Bytes print as numbers: 112 97 121 is "pay", 0x70, 0x61 too.
	for _, leak := range []string{"secret", "token-", "payload-", "112 97 121", "0x70, 0x61", "7061796c"} {
		if strings.Contains(s, leak) {
			t.Errorf("%s tells a secret: %s", what, s)
		}
	}
}

func TestNotificationKeepsItsSecrets(t *testing.T) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		wantNoSecret(t, verb, fmt.Sprintf(verb, secret))
		wantNoSecret(t, verb+" of a pointer", fmt.Sprintf(verb, &secret))
		wantNoSecret(t, verb+" inside", fmt.Sprintf(verb, struct{ N push.Notification }{secret}))
	}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "n", secret)
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "n", secret)
	wantNoSecret(t, "slog", out.String())
	if !strings.Contains(out.String(), `"platform":"ios","kind":"content"`) {
		t.Errorf("log says %s", out.String())
	}
}

func TestNames(t *testing.T) {
	tests := []struct {
		value fmt.Stringer
		want  string
	}{
		{push.IOS, "ios"}, {push.Android, "android"}, {push.Platform(0), "unknown"}, {push.Platform(3), "unknown"},
		{push.Content, "content"}, {push.Wake, "wake"}, {push.Kind(0), "unknown"}, {push.Kind(3), "unknown"},
	}
	for _, tt := range tests {
		if got := tt.value.String(); got != tt.want {
			t.Errorf("%T %d is called %q, want %q", tt.value, tt.value, got, tt.want)
		}
	}
}

func TestLogSender(t *testing.T) {
	var out bytes.Buffer
	s := push.NewLogSender(slog.New(slog.NewTextHandler(&out, nil)))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := s.Send(t.Context(), secret); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := s.Send(t.Context(), push.Notification{Token: "token-2", Platform: push.Android, Kind: push.Wake}); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Send(ended, secret); !errors.Is(err, context.Canceled) {
		t.Errorf("Send with an ended context: %v", err)
	}
	if ios, android := s.Count(push.IOS, push.Content), s.Count(push.Android, push.Wake); ios != 10 || android != 1 {
		t.Errorf("counted %d and %d, want 10 and 1", ios, android)
	}
	log := out.String()
	wantNoSecret(t, "log", log)
	for _, want := range []string{"platform=ios kind=content count=10", "platform=android kind=wake count=1"} {
		if !strings.Contains(log, want) {
			t.Errorf("log lacks %q:\n%s", want, log)
		}
	}
}
