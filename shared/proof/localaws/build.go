//go:build unix

package localaws

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Names are the functions, by the names that they have in the stack, and their folders
// below functions/.
var Names = map[string]string{"Connect": "connect", "Message": "message", "Disconnect": "disconnect", "Sweeper": "sweeper"}

// Build compiles the four functions into dir, as they are compiled for AWS:
// dir/connect/bootstrap and so on. They are for this machine, if env does not say
// otherwise.
func Build(root, dir string, env ...string) error {
	for _, name := range Names {
		if err := compile(root, filepath.Join(dir, name, "bootstrap"), "./functions/"+name, env...); err != nil {
			return err
		}
	}
	return nil
}

// BuildFront compiles the binary into dir/blindpost.
func BuildFront(root, dir string) error {
	return compile(root, filepath.Join(dir, "blindpost"), "./cmd/blindpost")
}

func compile(root, out, pkg string, env ...string) error {
	cmd := exec.Command("go", "build", "-tags", "lambda.norpc", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", out, pkg)
	cmd.Dir = root
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("failed to build %s: %w\n%s", pkg, err, text)
	}
	return nil
}
