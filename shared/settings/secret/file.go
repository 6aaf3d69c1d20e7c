package secret

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds a file of secrets, in bytes.
const maxFile = 64 << 10

// File is an Options.Read for a file.
func File(name string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		f, err := os.Open(name)
		if err != nil {
			return "", unnamed(err)
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
		if err != nil {
			return "", unnamed(err)
		}
		if len(data) > maxFile {
			return "", fmt.Errorf("failed to read a secret: its file is larger than %d bytes", maxFile)
		}
		return string(data), nil
	}
}

// unnamed is the error without the name of the file: an operator may have written the
// secret itself in its place.
func unnamed(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("failed to read the file of a secret: %w; give the name of a file, not the secret", err)
}

// EnsureFile makes a file with a random secret of 128 bits, which only its owner may
// read, unless there is a file of that name. It reports whether it made one.
func EnsureFile(name string) (bool, error) {
	if _, err := os.Stat(name); err == nil {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return false, fmt.Errorf("failed to make a secret: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // with mode 0600
	if err != nil {
		return false, fmt.Errorf("failed to make a secret: %w", err)
	}
	_, err = f.WriteString(rand.Text() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		// A link, not a rename, which would replace the file of another process that has
		// started at the same time: both then use the first file.
		err = os.Link(f.Name(), name)
	}
	err = errors.Join(err, os.Remove(f.Name()))
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to make a secret: %w", err)
	}
	return true, nil
}
