package skald

import (
	"context"
	"fmt"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

// reply names the frame that answers a request.
type reply int

const (
	replyAuthorizeOk reply = iota + 1
	replyPairingReady
	replyPairingStopOk
	replyPresenceList
)

// request is a frame that waits for its answer.
type request struct {
	want reply
	// sentBefore is how many messages were written before it.
	sentBefore uint64
	answered   chan answer // holds one
}

type answer struct {
	frame *skaldpb.RelayFrame
	err   error
}

// ask writes a frame and waits for the frame that answers it. If ctx ends
// first, the request goes on without its caller.
func (l *link) ask(ctx context.Context, f *skaldpb.RelayFrame, want reply) (*skaldpb.RelayFrame, error) {
	answered, err := l.start(ctx, f, want)
	if err != nil {
		return nil, err
	}
	select {
	case a := <-answered:
		return a.frame, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("failed to wait for the relay: %w", context.Cause(ctx))
	}
}

// start writes a frame once earlier requests are answered. The channel yields
// one answer, also when the link ends.
func (l *link) start(ctx context.Context, f *skaldpb.RelayFrame, want reply) (<-chan answer, error) {
	frame, err := encodeFrame(f)
	if err != nil {
		return nil, err
	}
	select {
	case l.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("failed to wait for an earlier request: %w", context.Cause(ctx))
	case <-l.ctx.Done():
		return nil, l.gone()
	}
	l.q.expect(1)
	release := func() {
		l.q.expect(-1)
		<-l.asking
	}
	r := &request{want: want, answered: make(chan answer, 1)}
	err = l.m.inOrder(ctx, func() error {
		l.mu.Lock()
		r.sentBefore = l.sent
		l.pending = r
		l.mu.Unlock()
		return l.write(frame)
	})
	if err != nil {
		l.forget(r)
		release()
		return nil, err
	}
	out := make(chan answer, 1)
	if !l.spawn(func() {
		a := l.await(r)
		release()
		out <- a
	}) {
		l.forget(r)
		release()
		return nil, l.gone()
	}
	return out, nil
}

func (l *link) await(r *request) answer {
	defer l.forget(r)
	timer := time.NewTimer(l.m.cfg.RequestTimeout)
	defer timer.Stop()
	select {
	case a := <-r.answered:
		return a
	case <-l.ctx.Done():
	case <-timer.C:
		// A late answer would be taken for that of the next request.
		l.fail(fmt.Errorf("%w: no answer within %v", ErrSilent, l.m.cfg.RequestTimeout))
	}
	select {
	case a := <-r.answered:
		return a
	default:
		return answer{err: l.gone()}
	}
}

func (l *link) gone() error {
	return fmt.Errorf("%w: %w", ErrNotConnected, context.Cause(l.ctx))
}

func (l *link) forget(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == r {
		l.pending = nil
	}
}

// answer gives a frame to the request that waits for it. One that nobody waits
// for is ignored.
func (l *link) answer(kind reply, f *skaldpb.RelayFrame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.pending; r != nil && r.want == kind {
		l.settleLocked(r, answer{frame: f})
	}
}

// blame gives an error of the relay to the request that waits, if it can be for
// nothing else. Errors name no frame; but a relay handles frames in order, so
// an error is for the request or for a message written before it. If there are
// such messages, the request waits on: for its answer, or for its timeout.
func (l *link) blame(e *RelayError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.pending; r != nil && r.sentBefore == l.sure {
		l.settleLocked(r, answer{err: e})
	}
}

func (l *link) settleLocked(r *request, a answer) {
	l.pending = nil
	l.sure = r.sentBefore
	r.answered <- a
}
