package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxShown bounds what is shown of one message, in runes.
const maxShown = 4000

// foreign makes text of a peer fit to print: what could move the cursor,
// change colours or reorder the line is replaced, and lines after the first are
// indented, so that no message can look like output of this program.
func foreign(text string) string {
	var b strings.Builder
	shown := 0
	for _, r := range strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\r\n") {
		if shown++; shown > maxShown {
			fmt.Fprintf(&b, "… (%d characters in all)", utf8.RuneCountInString(text))
			break
		}
		switch {
		case r == '\n':
			b.WriteString("\n    ")
		case r == '\t':
			b.WriteByte(' ')
		case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control), r == '\u2028', r == '\u2029':
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// foreignLine is foreign for text that has to stay on one line.
func foreignLine(text string) string {
	return strings.Join(strings.Fields(foreign(text)), " ")
}

// fold breaks the lines of a text that are longer than width, and keeps their
// indentation.
func fold(text string, width int) string {
	var folded []string
	for _, l := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(l) <= width {
			folded = append(folded, l)
			continue
		}
		indent := l[:len(l)-len(strings.TrimLeft(l, " "))]
		for _, part := range wrap(l, width-len(indent)) {
			folded = append(folded, indent+part)
		}
	}
	return strings.Join(folded, "\n")
}

// wrap breaks a text into lines of at most width characters, between words. A
// longer word gets a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	var current strings.Builder
	length := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if length > 0 && length+1+n > width {
			lines = append(lines, current.String())
			current.Reset()
			length = 0
		}
		if length > 0 {
			current.WriteByte(' ')
			length++
		}
		current.WriteString(word)
		length += n
	}
	return append(lines, current.String())
}

// capital makes the first letter a capital.
func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(r)) + s[size:]
}

// count is a number with its noun, such as "1 client" or "2 clients".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
