package wiring

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// Start runs a function in Lambda. It does not return.
func Start(f Function) {
	c, err := Load(os.Environ(), f)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.Start(handler{New(c, AWS(c)), f})
}

// handler is a function as Lambda calls it.
type handler struct {
	app *App
	f   Function
}

var _ lambda.Handler = handler{}

func (h handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return h.app.Invoke(ctx, h.f, payload)
}
