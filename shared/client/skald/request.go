package skald

import (
	"context"
	"fmt"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

// reply is the kind of frame that answers a request.
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

// ask writes a request and waits for its answer. If ctx ends first, the request continues
// without its caller.
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

// start writes a request after earlier ones are answered. The channel gets one answer, even
// if the link ends.
func (l *link) start(ctx context.Context, f *skaldpb.RelayFrame, want reply) (<-chan answer, error) {
	frame, err := encodeFrame(f)
	if err != nil {
		return nil, err
	}
	select {
	case l.requestSlot <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("failed to wait for an earlier request: %w", context.Cause(ctx))
	case <-l.ctx.Done():
		return nil, l.gone()
	}
	l.q.addRequests(1)
	release := func() {
		l.q.addRequests(-1)
		<-l.requestSlot
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
	select {
	case a := <-r.answered:
		return a
	case <-l.ctx.Done():
	case <-time.After(l.m.cfg.RequestTimeout):
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

// answer gives a frame to the request that waits for it, and ignores it if there is none.
func (l *link) answer(kind reply, f *skaldpb.RelayFrame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.pending; r != nil && r.want == kind {
		l.settleLocked(r, answer{frame: f})
	}
}

// failPending ends the waiting request with an error of the relay, if the error cannot
// belong to another frame. Errors do not identify their frame, but a relay handles frames
// in order, so an error belongs to the request or to a message written before it. If there
// are such messages, the request keeps waiting for its answer or timeout.
func (l *link) failPending(e *RelayError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.pending; r != nil && r.sentBefore == l.handledUpTo {
		l.settleLocked(r, answer{err: e})
	}
}

func (l *link) settleLocked(r *request, a answer) {
	l.pending = nil
	l.handledUpTo = r.sentBefore
	r.answered <- a
}
