// Command connect is the Lambda function that admits a connection: the $connect route.
//
// The storage, queue and gateway adapters for AWS are not part of this version:
// the function starts, says so, and fails, so that nobody takes it for working.
package main

import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/lambda"
)

var errNoBackend = errors.New("this version of blindpost has no AWS back end; run `blindpost serve`")

func main() {
	lambda.Start(func(context.Context) error { return errNoBackend })
}
