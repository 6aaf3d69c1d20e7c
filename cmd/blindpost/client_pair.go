package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	skaldclient "blindpost/shared/client/skald"
)

// maxCodeLines bounds over how many lines a pasted pairing code may be broken.
const maxCodeLines = 40

// pair pairs with the agent of a pairing code: the one given with --pair, or the
// one that is entered. ok is false if the command ends here, with status.
func (c *clientChat) pair(ctx context.Context, given string) (status int, ok bool) {
	if given != "" && given != "-" {
		qr, err := readCode(given)
		if err == nil {
			err = c.pairWith(ctx, qr)
		}
		if err != nil {
			c.screen.warn("Not paired: %s.", explain(err))
			return 1, false
		}
		return 0, true
	}
	c.screen.note("\nTo pair, paste the line that `blindpost agent` shows below its QR code:")
	for {
		c.screen.ready()
		qr, err := c.enteredCode(ctx)
		if errors.Is(err, errNoCode) {
			c.screen.note("Not paired.")
			return 1, false
		}
		if err == nil {
			err = c.pairWith(ctx, qr)
		}
		if err == nil {
			return 0, true
		}
		if ctx.Err() != nil {
			return 1, false
		}
		c.screen.warn("Not paired: %s. Paste another code:", explain(err))
	}
}

// readCode reads a pairing code from an argument, or from the file it names.
func readCode(given string) (skaldclient.PairingQR, error) {
	name, isFile := strings.CutPrefix(given, "@")
	if !isFile {
		return skaldclient.ParsePairingQR([]byte(given))
	}
	doc, err := os.ReadFile(name)
	if err != nil {
		return skaldclient.PairingQR{}, fmt.Errorf("failed to read pairing code: %w", err)
	}
	return skaldclient.ParsePairingQR([]byte(strings.TrimSpace(string(doc))))
}

// errNoCode says that the person has given up pairing.
var errNoCode = errors.New("no pairing code was entered")

// enteredCode waits for a pairing code to be entered. It may come in several
// lines: that is how some terminals copy a long one.
func (c *clientChat) enteredCode(ctx context.Context) (skaldclient.PairingQR, error) {
	var code strings.Builder
	for n := 0; ; {
		var l line
		var more bool
		select {
		case l, more = <-c.input:
		case <-ctx.Done():
			return skaldclient.PairingQR{}, errNoCode
		}
		if !more {
			return skaldclient.PairingQR{}, errNoCode
		}
		c.screen.entered()
		text := strings.TrimSpace(l.text)
		switch {
		case n == 0 && text == "":
			c.screen.ready()
			continue
		case n == 0 && (text == "/quit" || text == "/exit"):
			return skaldclient.PairingQR{}, errNoCode
		}
		n++
		code.WriteString(text)
		whole := code.String()
		if n < maxCodeLines && strings.HasPrefix(whole, "{") && !strings.HasSuffix(whole, "}") {
			continue
		}
		return skaldclient.ParsePairingQR([]byte(whole))
	}
}

// pairWith pairs by a code, which the relay accepts once.
func (c *clientChat) pairWith(ctx context.Context, qr skaldclient.PairingQR) error {
	if err := c.client.Pair(ctx, qr); err != nil {
		return err
	}
	c.paired = true
	c.screen.note("Paired.")
	if c.relay == "" {
		c.screen.note("  relay      %s", foreign(qr.RelayURL))
	}
	return nil
}
