package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// screen writes what a person reads. Answers and messages go to standard output,
// remarks of the program to standard error, so that a script can tell them
// apart. On a terminal there is a prompt, and new lines are written above it. Its
// methods may be called concurrently.
type screen struct {
	out, err io.Writer
	width    int  // in columns
	draws    bool // out is a terminal: draw
	ansi     bool // it knows escape sequences
	color    bool // and the user likes colours
	prompt   string

	mu       sync.Mutex
	prompted bool // the cursor stands behind the prompt
}

// defaultWidth is for terminals that do not say how wide they are.
const defaultWidth = 80

// Styles of text, by escape sequence.
const (
	styleBold  = "\x1b[1m"
	styleDim   = "\x1b[2m"
	styleGreen = "\x1b[32m"
	styleRed   = "\x1b[31m"
	styleNone  = "\x1b[0m"

	// clearLine goes to the beginning of the line and empties it.
	clearLine = "\r\x1b[K"
)

// newScreen finds out whether the streams are terminals. The prompt is shown only if
// both input and output are.
func newScreen(e env, prompt string) *screen {
	s := &screen{out: e.stdout, err: e.stderr, width: defaultWidth}
	width, terminal := terminalWidth(e.stdout)
	if !terminal {
		return s
	}
	if width > 0 {
		s.width = width
	}
	s.draws = true
	s.ansi = e.variable("TERM") != "dumb"
	s.color = s.ansi && e.variable("NO_COLOR") == ""
	if _, typed := terminalWidth(e.stdin); typed && s.ansi {
		s.prompt = prompt
	}
	return s
}

// variable returns an environment variable, or "".
func (e env) variable(name string) string {
	// The last one counts, as it does for package os.
	for _, kv := range slices.Backward(e.environ) {
		if key, value, ok := strings.Cut(kv, "="); ok && key == name {
			return value
		}
	}
	return ""
}

// print writes lines to standard output.
func (s *screen) print(format string, args ...any) {
	s.write(s.out, fmt.Sprintf(format, args...))
}

// note writes a remark to standard error.
func (s *screen) note(format string, args ...any) { s.remark(styleDim, format, args...) }

// warn writes a remark that should not be overlooked.
func (s *screen) warn(format string, args ...any) { s.remark(styleRed, format, args...) }

func (s *screen) remark(style, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.draws {
		text = fold(text, s.width-1)
	}
	s.write(s.err, s.styled(style, text))
}

func (s *screen) write(w io.Writer, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompted {
		text = clearLine + text
		s.prompted = false
	}
	// A failed write is ignored: there is no other place to report it.
	_, _ = io.WriteString(w, text+"\n")
}

// styled puts a style around text if the screen has colours.
func (s *screen) styled(style, text string) string {
	if style == "" || !s.color {
		return text
	}
	return style + text + styleNone
}

// ready shows the prompt if it is not there.
func (s *screen) ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompt == "" || s.prompted {
		return
	}
	s.prompted = true
	_, _ = io.WriteString(s.out, s.prompt)
}

// entered says that the person has pressed Enter, which moved the cursor.
func (s *screen) entered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompted = false
}

// showQR draws a QR code, or says why not.
func (s *screen) showQR(text string) {
	if !s.draws {
		s.note("(The QR code is left out: this is not a terminal.)")
		return
	}
	lines, err := drawQR(text, s.width, s.ansi)
	if err != nil {
		s.note("(The QR code is left out: %v.)", err)
		return
	}
	s.print("\n%s\n", strings.Join(lines, "\n"))
}
