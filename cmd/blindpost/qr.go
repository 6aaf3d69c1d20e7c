package main

import (
	"errors"
	"fmt"
	"strings"

	"rsc.io/qr"
)

// A QR code is drawn with half blocks: one character is two modules, one above
// the other, which makes the modules square in most fonts. The key says whether the upper
// and the lower one are dark.
var qrBlocks = map[[2]bool]string{
	{true, true}:   "█",
	{true, false}:  "▀",
	{false, true}:  "▄",
	{false, false}: " ",
}

// Light border around a code, in modules. The standard asks for four; phones
// read two, which is what lets a pairing code fit into 80 columns.
const (
	qrBorder       = 4
	qrNarrowBorder = 2
)

// Black on white of the fixed part of the 256 colours, which no theme changes:
// so a code is dark on light on every terminal, as scanners want it.
const (
	qrInk   = "\x1b[38;5;16;48;5;231m"
	qrReset = "\x1b[0m"
)

var errQRTooWide = errors.New("the terminal is too narrow")

// drawQR draws text as a QR code of at most width columns, a line of the screen
// each. With ansi it sets its own colours. Without, it draws the light modules,
// for the dark background that most terminals have; on a light one the code is
// inverted, which most phones read as well.
func drawQR(text string, width int, ansi bool) ([]string, error) {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return nil, fmt.Errorf("failed to make a QR code: %w", err)
	}
	border := qrBorder
	if code.Size+2*border > width {
		border = qrNarrowBorder
	}
	if need := code.Size + 2*border; need > width {
		return nil, fmt.Errorf("%w: the code takes %d columns, there are %d", errQRTooWide, need, width)
	}
	var lines []string
	for y := -border; y < code.Size+border; y += 2 {
		lines = append(lines, qrLine(code, y, border, ansi))
	}
	return lines, nil
}

// qrLine draws the module rows y and y+1. A row below the code, which an odd
// height leaves over, is part of the border.
func qrLine(code *qr.Code, y, border int, ansi bool) string {
	var b strings.Builder
	if ansi {
		b.WriteString(qrInk)
	}
	for x := -border; x < code.Size+border; x++ {
		b.WriteString(qrBlocks[[2]bool{code.Black(x, y) == ansi, code.Black(x, y+1) == ansi}])
	}
	if ansi {
		b.WriteString(qrReset)
	}
	return b.String()
}
