package apigw

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// hanging is how many attempts that hang fit into the time of an action.
const triesInTime = 2

// noAnswerError is an attempt that took too long. It is not the end of the context of
// the caller, and must not look like that.
type noAnswerError struct{ after time.Duration }

func (e *noAnswerError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

// attempt bounds one attempt: one that hangs must take neither the time of the next
// nor all the time of the function, after which Lambda kills it.
func (f *Front) attempt(ctx context.Context, do func(context.Context) error) error {
	limit := f.o.RetryFor / triesInTime
	try, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(try)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &noAnswerError{limit}
	}
	return err
}
