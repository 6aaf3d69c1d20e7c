package settings_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"blindpost/shared/settings"
)

const pageFile = "../../docs/settings.md"

var write = flag.Bool("write", false, "write docs/settings.md instead of looking whether it is stale")

const pageHead = `# Settings

Every setting of the relay, of its functions and of its stack. Written by ` + "`make settings`" + ` from the declarations in
` + "`shared/settings`" + `: change them there.

A setting has one name: ` + "`mailbox-cap`" + ` is the flag ` + "`--mailbox-cap`" + ` of ` + "`blindpost serve`" + `, the variable
` + "`BLINDPOST_MAILBOX_CAP`" + `, the line ` + "`mailbox-cap: 200`" + ` of a settings file (` + "`--config`" + `, YAML), and for the stack
` + "`-c blindpost:mailbox-cap=200`" + ` (or a key in ` + "`cdk.json`" + ` under ` + "`context`" + `). The flag wins over the variable, the variable
over the file. A variable that is set to nothing counts as not set, and so does a key of the context. Times are written
` + "`30s`, `168h` or `7d`, sizes `65536` or `64KiB`" + `. No setting is a secret: those are in files or in Secrets Manager.

**read by**: *binary* is ` + "`blindpost serve`" + `, *stack* the CDK app, *functions* (or single ones) the Lambda functions, which
the stack tells what was chosen. **reload**: SIGHUP changes it in a running binary; without it a change needs a restart.
`

func page() []byte {
	var b bytes.Buffer
	b.WriteString(pageHead)
	var group *settings.Group
	for _, s := range settings.All(settings.AllReaders) {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n| setting | value | default | read by | reload | meaning |\n| --- | --- | --- | --- | --- | --- |\n", group.Title)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", s.Name, value(s), code(s.Default), s.Readers, map[bool]string{true: "yes"}[s.Reload], cell(s.Help))
	}
	return b.Bytes()
}

// value is what a value must be.
func value(s *settings.Setting) string {
	switch {
	case s.Min != "":
		return fmt.Sprintf("%s to %s", s.Min, s.Max)
	case s.Unit == "WORD":
		return cell(s.Want)
	case s.Switch:
		return "true, false"
	}
	return strings.ToLower(s.Unit)
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// The reference page is what the declarations say.
func TestPage(t *testing.T) {
	if *write {
		if err := os.WriteFile(pageFile, page(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, page()) {
		t.Error("docs/settings.md is stale: run `make settings`")
	}
}
