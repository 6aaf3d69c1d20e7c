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

// binaries is where the functions and the front are built, standin the stand-in for
// DynamoDB: all tests share them.
var (
	binaries string
	standin  *localaws.Dynamo
)

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
	absolute, err := filepath.Abs(root)
	if err != nil {
		return fail(err)
	}
	if err := localaws.Build(absolute, dir); err != nil {
		return fail(err)
	}
	if err := localaws.BuildFront(absolute, dir); err != nil {
		return fail(err)
	}
	if standin, err = localaws.StartDynamo(absolute); err != nil {
		return fail(err)
	}
	defer standin.Close()
	return m.Run()
}
