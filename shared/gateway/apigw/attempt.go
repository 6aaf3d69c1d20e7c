package apigw

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// triesInTime is how many attempts that hang fit into the time of an action.
const triesInTime = 2

// noAnswerError says that an attempt took too long. It does not unwrap to a context
// error, because the context of the caller has not ended.
type noAnswerError struct{ after time.Duration }

func (e *noAnswerError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

// attempt bounds one attempt. An attempt that hangs must leave time for the next, and
// must end before Lambda kills the function.
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
