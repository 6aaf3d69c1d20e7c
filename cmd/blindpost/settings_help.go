package main

import (
	"fmt"
	"io"
	"strings"

	"blindpost/shared/settings"
)

// The help is for a terminal of helpWidth columns; the meaning of a setting begins in column helpIndent.
const helpWidth, helpIndent = 100, 36

// helpSettings prints the settings of `blindpost serve` in their groups: those that most people need, or all.
func helpSettings(out io.Writer, everything bool) {
	fmt.Fprintf(out, "Usage: blindpost serve [flags]\n\n"+
		"Each flag can also be a variable (--log-level: %s) or a line of the settings file\n"+
		"(log-level: debug). The flag wins over the variable, the variable over the file.\n", settings.LogLevel.Variable())
	var group *settings.Group
	for _, s := range settings.All(settings.Binary) {
		if s.Group.More && !everything {
			continue
		}
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(out, "\n%s%s\n", group.Title, map[bool]string{true: " (SIGHUP reads them again)"}[s.Reload])
		}
		helpSetting(out, s)
	}
	if !everything {
		fmt.Fprintln(out, "\n--help-all lists the rest: the transport, Agentknock, the limits of Aelos, the front of the AWS\nfunctions. docs/settings.md has every setting of relay, functions and stack.")
	}
}

func helpSetting(out io.Writer, s *settings.Setting) {
	line := fmt.Sprintf("  %s %s", settings.Flag(s.Name), s.Unit)
	words := strings.Fields(s.Help)
	if s.Default != "" && !s.Switch {
		words = append(words, fmt.Sprintf("(default %s)", s.Default))
	}
	if len(line) > helpIndent-2 {
		fmt.Fprintln(out, line)
		line = ""
	}
	line += strings.Repeat(" ", helpIndent-len(line)-1)
	for _, word := range words {
		if len(line)+1+len(word) > helpWidth {
			fmt.Fprintln(out, line)
			line = strings.Repeat(" ", helpIndent-1)
		}
		line += " " + word
	}
	fmt.Fprintln(out, line)
}
