package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// traces are the forms in which bytes would show up in a file or a log: as they
// are, in hex, and as part of something in base64.
func traces(b []byte) [][]byte {
	if len(b) == 0 {
		return nil
	}
	digits := hex.EncodeToString(b)
	forms := [][]byte{b, []byte(digits), []byte(strings.ToUpper(digits))}
	// In base64, three bytes are four characters: what b looks like depends on
	// how many bytes stand before it.
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), b...))
		first := (before*8 + 5) / 6
		last := (before + len(b)) * 8 / 6
		whole := text[first:last]
		forms = append(forms, []byte(whole), []byte(strings.NewReplacer("+", "-", "/", "_").Replace(whole)))
	}
	return forms
}

// holds reports whether a haystack has a trace of something.
func holds(haystack, what []byte) bool {
	return slices.ContainsFunc(traces(what), func(form []byte) bool { return bytes.Contains(haystack, form) })
}

// foundIn reports an error if something has no trace in what was written.
func foundIn(contents [][]byte, what []byte) error {
	if !slices.ContainsFunc(contents, func(content []byte) bool { return holds(content, what) }) {
		return errors.New("it is not there")
	}
	return nil
}

// nothingSaid reports an error if any of the texts has a trace in what was written.
func nothingSaid(contents [][]byte, texts []string) error {
	for _, text := range texts {
		if foundIn(contents, []byte(text)) == nil {
			return fmt.Errorf("there is %q", text)
		}
	}
	return nil
}
