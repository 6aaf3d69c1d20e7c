//go:build !unix

package main

import "os"

// terminalWidth reports whether a reader or writer is a terminal. Its width, in columns,
// is 0 here, which stands for unknown.
func terminalWidth(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	info, err := f.Stat()
	return 0, err == nil && info.Mode()&os.ModeCharDevice != 0
}
