//go:build cdk

package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
)

// artifacts are what is deployed into the stack. The stack does not care where they
// come from, so that tests of the template need not compile anything.
type artifacts struct {
	function func(name string) awslambda.Code
	image    string // folder with the Dockerfile of the binary front
}

// built are the artifacts that build has made below root.
func built(root string) artifacts {
	return artifacts{
		function: func(name string) awslambda.Code {
			return awslambda.Code_FromAsset(str(binaryDir(root, name)), nil)
		},
		image: imageDir(root),
	}
}

func binaryDir(root, function string) string {
	return filepath.Join(root, "bin", "functions", function)
}

func imageDir(root string) string { return filepath.Join(root, "bin", "image") }

//go:embed image/Dockerfile
var dockerfile []byte

// build compiles the functions for Lambda, one after the other, and the
// binary front if image is set. The flags leave nothing of this machine in the binaries: the same
// source gives the same bytes, so that a deployment replaces only what has changed.
func build(root string, image bool) error {
	for _, f := range functionNames {
		if err := compile(root, filepath.Join(binaryDir("", f), "bootstrap"), "functions/"+f, "-tags", "lambda.norpc"); err != nil {
			return err
		}
	}
	if !image {
		return nil
	}
	if err := compile(root, filepath.Join(imageDir(""), "blindpost"), "cmd/blindpost"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(imageDir(root), "Dockerfile"), dockerfile, 0o644); err != nil {
		return fmt.Errorf("failed to write the Dockerfile: %w", err)
	}
	return nil
}

func compile(root, out, source string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", out}, flags...)
	cmd := exec.Command("go", append(args, "./"+source)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	// Standard output belongs to the CDK.
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("failed to build %s: %w", source, err)
	}
	return nil
}
