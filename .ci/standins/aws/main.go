//go:build unix

// Command aws runs the four functions on this machine, with stand-ins for what is
// around them, until it is interrupted: the back end for `blindpost serve --lambda`.
// Nothing is kept.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"blindpost/shared/proof/localaws"
	"blindpost/shared/settings/secret"
)

const (
	lambdaAddress = "127.0.0.1:3001" // that of sam local start-lambda
	callback      = "http://127.0.0.1:8444"
	// wordFile is where `blindpost serve --lambda` looks for it, started from here.
	wordFile = "blindpost-data/callback-secret"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	binaries := filepath.Join(root, "bin", "functions-here")
	fmt.Fprintln(os.Stderr, "building the functions ...")
	if err := localaws.Build(root, binaries); err != nil {
		return err
	}
	name := filepath.Join(root, wordFile)
	if _, err := secret.EnsureFile(name); err != nil {
		return err
	}
	dynamo, err := localaws.StartDynamo(root)
	if err != nil {
		return err
	}
	defer dynamo.Close()
	house, err := localaws.Open(localaws.Options{
		Dynamo: dynamo, Binaries: binaries, LambdaAddress: lambdaAddress, Fronts: callback, SecretFile: name, Log: os.Stderr,
		Env: []string{"BLINDPOST_LOG_LEVEL=info"},
	})
	if err != nil {
		return err
	}
	defer house.Close()
	fmt.Printf("The functions run. In another terminal:\n\n"+
		"  bin/blindpost serve --lambda %s\n\n"+
		"or, with the frames by way of the ingress queue:\n\n"+
		"  bin/blindpost serve --lambda %s --lambda-ingress %s\n\n"+
		"Ctrl-C ends it.\n", house.Lambda.URL, house.Lambda.URL, house.IngressURL)
	<-ctx.Done()
	return nil
}
