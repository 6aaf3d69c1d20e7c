package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rsc.io/qr"
)

// pairingCode has the length of a real one.
var pairingCode = `{"v":1,"relay_url":"wss://relay.example.org/v1/ws","namespace_id":"` + strings.Repeat("ab", 32) +
	`","agent_ed25519_pub":"` + strings.Repeat("01", 32) + `","agent_x25519_pub":"` + strings.Repeat("9f", 32) +
	`","pairing_token":"` + strings.Repeat("7c", 32) + `"}`

// modules reads a drawing back: true is dark.
func modules(t *testing.T, lines []string, ansi bool) [][]bool {
	t.Helper()
	var rows [][]bool
	for _, l := range lines {
		if ansi {
			rest, ok := strings.CutPrefix(l, qrInk)
			rest, ok2 := strings.CutSuffix(rest, qrReset)
			if !ok || !ok2 {
				t.Fatalf("a line does not set its colours and take them back: %q", l)
			}
			l = rest
		}
		var upper, lower []bool
		for _, r := range l {
			i := slices.Index([]rune(" ▀▄█"), r)
			if i < 0 {
				t.Fatalf("a line has %q in it", r)
			}
			upper = append(upper, (i&1 != 0) == ansi)
			lower = append(lower, (i&2 != 0) == ansi)
		}
		rows = append(rows, upper, lower)
	}
	return rows
}

func TestDrawQR(t *testing.T) {
	code, err := qr.Encode(pairingCode, qr.L)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		width  int
		ansi   bool
		border int
	}{
		{"wide", 200, true, qrBorder},
		{"just as wide", code.Size + 2*qrBorder, true, qrBorder},
		{"narrow", code.Size + 2*qrBorder - 1, true, qrNarrowBorder},
		{"without colours", 200, false, qrBorder},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, err := drawQR(pairingCode, c.width, c.ansi)
			if err != nil {
				t.Fatal(err)
			}
			rows := modules(t, lines, c.ansi)
			for y, row := range rows {
				if len(row) != code.Size+2*c.border {
					t.Fatalf("row %d has %d modules, want %d", y, len(row), code.Size+2*c.border)
				}
				for x, dark := range row {
					// Outside of the code, Black says false.
					if want := code.Black(x-c.border, y-c.border); dark != want {
						t.Fatalf("module %d, %d is dark: %v, want %v", x, y, dark, want)
					}
				}
			}
			if len(rows) < code.Size+2*c.border {
				t.Errorf("there are %d rows, want %d", len(rows), code.Size+2*c.border)
			}
		})
	}
}

func TestPairingCodeFitsIntoEightyColumns(t *testing.T) {
	if _, err := drawQR(pairingCode, 80, true); err != nil {
		t.Error(err)
	}
}

func TestDrawQRSaysWhyNot(t *testing.T) {
	if _, err := drawQR(pairingCode, 60, true); !errors.Is(err, errQRTooWide) {
		t.Errorf("60 columns: %v", err)
	}
	if _, err := drawQR(strings.Repeat("x", 4000), 1000, true); err == nil {
		t.Error("4000 bytes became a QR code")
	}
}
