//go:build cdk

// Command infra is the CDK app of Blindpost: one stack that holds the relay on AWS, paid
// per use. `cdk synth`, `cdk deploy` and the like run it (see cdk.json in the root of the
// repository).
//
// Without any setting the stack is complete and can be deployed. docs/settings.md lists
// the settings. An unknown setting, or settings that contradict each other, end the run
// before anything is made. The checks of cdk-nag are part of every run: a finding that is
// not suppressed with a reason fails `cdk synth` and `cdk deploy`.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "blindpost:", err)
		os.Exit(1)
	}
}

func run() error {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	settings, err := readContext(app.Node().GetAllContext(nil))
	if err != nil {
		return err
	}
	if err := build(".", settings.binaryFront); err != nil {
		return err
	}
	if err := settings.bundleAttestationRoots(binaryDir(".", "connect")); err != nil {
		return err
	}
	newStack(app, settings, built("."))
	awscdk.Aspects_Of(app).Add(nagChecks(), nil)
	app.Synth(nil)
	return nil
}

func nagChecks() awscdk.IAspect {
	return cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Reports: jsii.Bool(false)})
}
