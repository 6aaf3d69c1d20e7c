package aelos

import (
	"testing"
	"time"
)

// A token that expires too late is refused, if the operator sets a limit.
func TestTokensThatLastTooLong(t *testing.T) {
	story(t, func(w *world) {
		for life, ok := range map[time.Duration]bool{time.Hour: true, 2 * time.Hour: true, 2*time.Hour + time.Second: false, 1000 * time.Hour: false} {
			l := w.dial().hello("viewer", 2, with(viewerClaims("org", "boat"), "exp", time.Now().Add(life).Unix()))
			if ok {
				l.want(welcome2, offline)
			} else {
				l.want(noAdmit)
			}
		}
	}, func(o *worldOptions) { o.limits = func(l *Limits) { l.MaxTokenLife = 2 * time.Hour } })
}
