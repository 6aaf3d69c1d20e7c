//go:build aws

package localaws_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"blindpost/shared/proof/localaws"
)

// root is the tree.
const root = "../../.."

// tree is the same, and binaries where the functions and the front are built: all tests
// share them.
var tree, binaries string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "localaws")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	binaries = dir
	if tree, err = filepath.Abs(root); err != nil {
		return fail(err)
	}
	if err := localaws.Build(tree, dir); err != nil {
		return fail(err)
	}
	if err := localaws.BuildFront(tree, dir); err != nil {
		return fail(err)
	}
	return m.Run()
}
