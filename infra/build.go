//go:build cdk

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
)

// codeSource gives the code of a function. The stack does not care where it comes
// from, so that tests of the template need not compile anything.
type codeSource func(function string) awslambda.Code

// builtCode is what buildFunctions has left below root.
func builtCode(root string) codeSource {
	return func(function string) awslambda.Code {
		return awslambda.Code_FromAsset(str(binaryDir(root, function)), nil)
	}
}

func binaryDir(root, function string) string {
	return filepath.Join(root, "bin", "functions", function)
}

// buildFunctions compiles the functions for Lambda, one after the other. The flags
// leave nothing of this machine in the binaries: the same source gives the same
// bytes, so that a deployment replaces only the functions that have changed.
func buildFunctions(root string) error {
	for _, f := range functionNames {
		out := filepath.Join(binaryDir("", f), "bootstrap")
		cmd := exec.Command("go", "build", "-tags", "lambda.norpc", "-trimpath", "-buildvcs=false",
			"-ldflags=-s -w -buildid=", "-o", out, "./"+filepath.ToSlash(filepath.Join("functions", f)))
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
		// Standard output belongs to the CDK.
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("failed to build functions/%s: %w", f, err)
		}
	}
	return nil
}
