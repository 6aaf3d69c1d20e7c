package main

import (
	"fmt"
	"os"
)

// benchFolder makes a folder for databases in dir. If dir is "" it finds a place
// that is on a disk, so that what the table calls durable is.
func benchFolder(dir string) (path string, memory bool, err error) {
	places := []string{dir}
	if dir == "" {
		places = []string{os.TempDir(), "/var/tmp", "."}
	}
	for _, p := range places {
		path, err = os.MkdirTemp(p, "blindpost-bench-")
		if err != nil {
			continue
		}
		if !inMemory(path) {
			return path, false, nil
		}
		_ = os.Remove(path)
		memory = true
	}
	if !memory {
		return "", false, fmt.Errorf("failed to make a folder for the database: %w", err)
	}
	if path, err = os.MkdirTemp(dir, "blindpost-bench-"); err != nil {
		return "", false, fmt.Errorf("failed to make a folder for the database: %w", err)
	}
	return path, true, nil
}
