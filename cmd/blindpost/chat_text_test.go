package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/gateway"
)

func TestForeignTextCannotTouchTheScreen(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"hello", "hello"},
		{"Grüße, 世界 👋", "Grüße, 世界 👋"},
		{"a\tb", "a b"},
		{"one\ntwo\n", "one\n    two"},
		{"\x1b[2Jgone", "\uFFFD[2Jgone"},
		{"back\rforth\x08", "back\uFFFDforth\uFFFD"},
		{"\u009b31m", "\uFFFD31m"},
		{"abc\u202Ecba", "abc\uFFFDcba"},
		{"line\u2028separator", "line\uFFFDseparator"},
		{"broken \xff\xfe", "broken \uFFFD"},
		{"", ""},
	} {
		if got := foreign(c.text); got != c.want {
			t.Errorf("foreign(%q) is %q, want %q", c.text, got, c.want)
		}
	}
	long := foreign(strings.Repeat("x", maxShown+500))
	if !strings.HasPrefix(long, strings.Repeat("x", maxShown)+"…") || !strings.Contains(long, fmt.Sprint(maxShown+500)) {
		t.Errorf("a long text ends with %q", long[maxShown-10:])
	}
}

func FuzzForeign(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b]0;title\x07\u202e\n\xc3")
	f.Fuzz(func(t *testing.T, text string) {
		for i, l := range strings.Split(foreign(text), "\n") {
			if i > 0 && !strings.HasPrefix(l, "    ") {
				t.Errorf("line %d of %q is not indented", i, text)
			}
			if strings.ContainsFunc(l, unicode.IsControl) {
				t.Errorf("%q keeps a control character", text)
			}
		}
	})
}

func TestFoldKeepsWordsAndIndentation(t *testing.T) {
	got := fold("Head\n  a line that is indented\n\nshort", 14)
	want := "Head\n  a line that\n  is indented\n\nshort"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := wrap("averyveryverylongword and more", 8); !slices.Equal(got, []string{"averyveryverylongword", "and more"}) {
		t.Errorf("got %q", got)
	}
	if got := wrap("", 8); !slices.Equal(got, []string{""}) {
		t.Errorf("an empty text became %q", got)
	}
}

func TestReadLines(t *testing.T) {
	huge := strings.Repeat("y", maxLine+1)
	for _, c := range []struct {
		name, input string
		want        []line
	}{
		{"nothing", "", nil},
		{"two lines", "one\ntwo\n", []line{{text: "one"}, {text: "two"}}},
		{"no end of the last line", "one\ntwo", []line{{text: "one"}, {text: "two"}}},
		{"Windows", "one\r\n\r\n", []line{{text: "one"}, {text: ""}}},
		{"longer than a buffer", strings.Repeat("x", 70_000) + "\n", []line{{text: strings.Repeat("x", 70_000)}}},
		{"too long", huge + "\nnext\n", []line{{tooLong: true}, {text: "next"}}},
		{"much too long", huge + huge + huge, []line{{tooLong: true}}},
		{"not UTF-8", "a\xffb\n", []line{{text: "a\uFFFDb"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []line
			for l := range readLines(t.Context(), strings.NewReader(c.input)) {
				got = append(got, l)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %d lines, want %d, or their text differs", len(got), len(c.want))
			}
		})
	}
}

func TestReadLinesEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lines := readLines(ctx, bufio.NewReader(strings.NewReader("one\ntwo\nthree\n")))
	<-lines
	cancel()
	n := 0
	for range lines {
		n++
	}
	if n > 1 {
		t.Errorf("%d lines came after the end", n)
	}
}

func TestCutCommand(t *testing.T) {
	for _, c := range []struct {
		text, name, rest string
		ok               bool
	}{
		{"hello", "", "", false},
		{"/quit", "quit", "", true},
		{"/to 2  hello there ", "to", "2  hello there", true},
		{"//etc/hosts", "", "", false},
		{"/", "", "", true},
	} {
		name, rest, ok := cutCommand(c.text)
		if name != c.name || rest != c.rest || ok != c.ok {
			t.Errorf("cutCommand(%q) is %q, %q, %v", c.text, name, rest, ok)
		}
	}
}

func TestEveryRelayErrorHasWords(t *testing.T) {
	for _, code := range []string{
		skaldclient.CodeChallengeTimeout, skaldclient.CodeInvalidSignature, skaldclient.CodeUnauthorized,
		skaldclient.CodeNotFound, skaldclient.CodePairingClosed, skaldclient.CodeRateLimited,
		skaldclient.CodePayloadTooLarge, skaldclient.CodeQueueFull, skaldclient.CodeBadRequest,
	} {
		words := explain(fmt.Errorf("wrapped: %w", &skaldclient.RelayError{Code: code, Message: "from the relay"}))
		if words == "" || strings.Contains(words, "from the relay") || strings.Contains(words, code) {
			t.Errorf("%s is explained as %q", code, words)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&skaldclient.RelayError{Code: "new_code", Message: "\x1b[31mred"}, `relay error: "new_code"`},
		{fmt.Errorf("dial: %w", syscall.ECONNREFUSED), "nothing listens"},
		{fmt.Errorf("x: %w", skaldclient.ErrReplaced), "only one can be connected"},
		{&skaldclient.CloseError{Code: gateway.CloseGoingAway}, "shutting down"},
		{&skaldclient.CloseError{Code: gateway.ClosePolicy, Reason: "rev\x07oked"}, "rev\uFFFDoked"},
		{&skaldclient.CloseError{Code: gateway.CloseInternal}, "ended the connection"},
		{errors.New("plain \x1b[1m"), "plain \uFFFD[1m"},
	} {
		got := explain(c.err)
		if !strings.Contains(got, c.want) || strings.ContainsRune(got, '\x1b') {
			t.Errorf("%v is explained as %q, want %q", c.err, got, c.want)
		}
	}
}

func TestPayloadText(t *testing.T) {
	payload := func(kind skaldclient.Kind, body string) skaldclient.Payload {
		return skaldclient.Payload{Kind: kind, Body: []byte(body)}
	}
	for _, c := range []struct {
		p    skaldclient.Payload
		want string
	}{
		{payload(kindChat, `{"text":"hi"}`), "hi"},
		{payload(kindChat, `{"text":7}`), `[chat] {"text":7}`},
		{payload(kindChat, ``), "[chat]"},
		{payload(skaldclient.KindNotification, `{"title":"Skald","body":"done"}`), "done"},
		{payload(skaldclient.KindInboxUpdate, `{"badge":0,"approvals":[],"clarifications":[],"elicitations":[]}`), "[the agent has no open questions]"},
		{payload(skaldclient.KindInboxUpdate, `{"badge":2,"approvals":[{"summary":"pay?"}],"clarifications":[{"question":"now?"}]}`),
			"[the agent's open questions: 2; a Skald app can answer them]\n- pay?\n- now?"},
		{payload("approval_response", `{"decision": "approved"}`), `[approval_response] {"decision":"approved"}`},
	} {
		if got := payloadText(c.p); got != c.want {
			t.Errorf("%s %s is shown as %q, want %q", c.p.Kind, c.p.Body, got, c.want)
		}
	}
}

func TestStateFile(t *testing.T) {
	dir := t.TempDir()
	e := env{environ: []string{"XDG_CONFIG_HOME=/overruled", "XDG_CONFIG_HOME=" + dir}}
	if got, want := stateFile(e, "agent"), filepath.Join(dir, "blindpost", "agent.json"); got != want {
		t.Errorf("the state is in %s, want %s", got, want)
	}
}

func TestOnThisComputer(t *testing.T) {
	for url, want := range map[string]bool{
		"wss://localhost:8443/v1/ws": true,
		"wss://127.0.0.1/v1/ws":      true,
		"wss://[::1]:8443/v1/ws":     true,
		"wss://relay.example/v1/ws":  false,
		"://":                        false,
	} {
		if got := onThisComputer(url); got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
}

func TestScreenKeepsThePromptLast(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out, err: &out, width: 30, draws: true, ansi: true, prompt: "> "}
	s.ready()
	s.ready()
	s.note("somebody is here, and has a lot to say")
	s.ready()
	s.entered()
	s.print("an answer")
	s.ready()
	want := "> " + clearLine + "somebody is here, and has a\nlot to say\n> an answer\n> "
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestScreenOfAPipeIsPlain(t *testing.T) {
	var out, notes strings.Builder
	s := newScreen(env{stdin: strings.NewReader(""), stdout: &out, stderr: &notes, environ: []string{"TERM=xterm"}}, "> ")
	s.ready()
	s.note("a remark %s", strings.Repeat("that is long ", 20))
	s.print("a message")
	s.showQR("code")
	if out.String() != "a message\n" {
		t.Errorf("standard output is %q", out.String())
	}
	if strings.ContainsRune(notes.String(), '\x1b') || strings.Count(notes.String(), "\n") != 2 {
		t.Errorf("standard error is %q", notes.String())
	}
}

var _ io.Writer = (*transcript)(nil)
