package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

// maxLine bounds a typed line, in bytes. It is above what the protocol can
// carry, so the protocol's own limit is what a user meets.
const maxLine = 1 << 20

// line is one line of input, without its end.
type line struct {
	text string
	// tooLong says that the line was over maxLine; its text is lost.
	tooLong bool
}

// readLines reads lines until the end of input or of ctx, and closes the channel
// then. A read that is under way cannot be interrupted: it ends with the input.
func readLines(ctx context.Context, r io.Reader) <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		in := bufio.NewReaderSize(r, 16<<10)
		for {
			l, err := readLine(in)
			if err == nil || l != (line{}) {
				select {
				case lines <- l:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// readLine reads one line. The last one may have no end.
func readLine(in *bufio.Reader) (line, error) {
	var b strings.Builder
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if b.Len()+len(part) > maxLine {
			long = true
			b.Reset()
		} else if !long {
			b.Write(part)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long {
			return line{tooLong: true}, err
		}
		text := strings.TrimRight(b.String(), "\r\n")
		return line{text: strings.ToValidUTF8(text, "\uFFFD")}, err
	}
}
