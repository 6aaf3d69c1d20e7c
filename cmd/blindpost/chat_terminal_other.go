//go:build !unix

package main

import "os"

// terminalWidth returns how many columns the terminal behind a reader or writer
// has, 0 if that cannot be found out; false if there is no terminal.
func terminalWidth(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	info, err := f.Stat()
	return 0, err == nil && info.Mode()&os.ModeCharDevice != 0
}
