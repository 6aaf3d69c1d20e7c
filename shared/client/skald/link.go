package skald

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"blindpost/shared/base/backoff"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
)

// When a connection breaks, the reader and the writer both get an error, but only one
// knows the reason. After a failed write the reader has writeGrace to find a close frame.
// If the connection was closed on this side, the reader waits the longer closedGrace until
// that side has set the reason.
const (
	writeGrace  = 500 * time.Millisecond
	closedGrace = 2 * writeGrace
)

// link is one admitted connection of an Agent or Client.
type link struct {
	m *member
	w *wire
	q *eventQueue

	// run is the context of Run.
	run context.Context
	// ctx ends with the connection; its cause is why.
	ctx context.Context
	// fail ends the connection. The first cause counts.
	fail context.CancelCauseFunc

	// requestSlot is a lock, held by the request that waits for its answer.
	requestSlot chan struct{}

	mu      sync.Mutex
	ended   bool
	broken  bool // a write has failed
	pending *request
	// sent counts the messages that were written; handledUpTo counts those that the relay
	// has certainly handled, because it has answered a later request.
	sent, handledUpTo uint64

	tasks sync.WaitGroup
}

func newLink(ctx context.Context, m *member, w *wire, q *eventQueue) *link {
	l := &link{m: m, w: w, q: q, run: ctx, requestSlot: make(chan struct{}, 1)}
	// A stop of Run must not cut the connection before its close frame is sent.
	l.ctx, l.fail = context.WithCancelCause(context.WithoutCancel(ctx))
	return l
}

// spawn runs f in a goroutine that ends before the link does. It reports false
// if the link has ended.
func (l *link) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.tasks.Go(f)
	return true
}

// serve reads until the connection ends or ctx does, and returns why.
func (l *link) serve(ctx context.Context) error {
	l.spawn(l.readLoop)
	l.spawn(l.keepAlive)
	select {
	case <-l.ctx.Done():
	case <-ctx.Done():
		l.w.close(gateway.CloseNormal, "")
		l.fail(context.Cause(ctx))
	}
	return context.Cause(l.ctx)
}

// end waits for all that runs on behalf of the link.
func (l *link) end(cause error) {
	l.fail(cause)
	l.w.abort()
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.tasks.Wait()
}

func (l *link) readLoop() {
	for {
		// Before the read, because a frame that was read must be handled.
		if err := l.q.waitRoom(l.ctx); err != nil {
			return
		}
		f, err := l.w.Receive(l.ctx)
		switch {
		case errors.Is(err, errBadFrame):
			l.q.push(Fault{Err: err}, 0)
			continue
		case err != nil:
			if errors.Is(err, net.ErrClosed) {
				_ = backoff.Sleep(l.ctx, closedGrace)
			}
			l.fail(err)
			return
		}
		if err := l.handle(f); err != nil {
			l.fail(err)
			return
		}
	}
}

// handle returns an error if the connection cannot go on. Frames that are
// unknown, or only for others, are ignored.
func (l *link) handle(f *skaldpb.RelayFrame) error {
	switch v := f.GetFrame().(type) {
	case *skaldpb.RelayFrame_Message:
		return l.m.receive(l, v.Message)
	case *skaldpb.RelayFrame_PeerOffline:
		key, err := ParsePublicKey(v.PeerOffline.GetPeer())
		if err != nil {
			return l.protocolFault(err)
		}
		l.q.push(PeerOffline{Peer: key}, 0)
	case *skaldpb.RelayFrame_PresenceEvent:
		key, err := ParsePublicKey(v.PresenceEvent.GetPubkey())
		if err != nil {
			return l.protocolFault(err)
		}
		switch v.PresenceEvent.GetStatus() {
		case skaldpb.Status_STATUS_ONLINE:
			l.q.push(PresenceChange{Peer: key, Online: true}, 0)
		case skaldpb.Status_STATUS_OFFLINE:
			l.q.push(PresenceChange{Peer: key}, 0)
		}
	case *skaldpb.RelayFrame_AuthorizeOk:
		l.answer(replyAuthorizeOk, f)
	case *skaldpb.RelayFrame_PairingReady:
		l.answer(replyPairingReady, f)
	case *skaldpb.RelayFrame_PairingStopOk:
		l.answer(replyPairingStopOk, f)
	case *skaldpb.RelayFrame_PresenceList:
		l.answer(replyPresenceList, f)
	case *skaldpb.RelayFrame_Error:
		e := &RelayError{Code: v.Error.GetCode(), Message: v.Error.GetMessage()}
		l.failPending(e)
		l.q.push(Fault{Err: e}, 0)
	case *skaldpb.RelayFrame_ClientPaired:
		return l.m.role.clientPaired(l, v.ClientPaired)
	}
	return nil
}

// protocolFault reports an invalid frame; the connection goes on.
func (l *link) protocolFault(err error) error {
	l.q.push(Fault{Err: fmt.Errorf("%w: %w", ErrProtocol, err)}, 0)
	return nil
}

// write writes one encoded frame. The caller holds writeSlot. write ignores the caller's
// context, because a frame that is cut off ends the connection.
func (l *link) write(frame []byte) error {
	ctx, cancel := context.WithTimeout(l.ctx, l.m.cfg.WriteTimeout)
	defer cancel()
	err := l.w.write(ctx, frame)
	if err == nil || errors.Is(err, ErrTooLarge) {
		return err
	}
	l.writeFailed(err)
	return fmt.Errorf("%w: %w", ErrNotConnected, err)
}

// writeFailed handles a failed write. From the first one on, senders wait for the next
// link. The connection stays open for writeGrace, because a close frame of the relay tells
// whether to reconnect.
func (l *link) writeFailed(err error) {
	l.mu.Lock()
	first := !l.broken
	l.broken = true
	l.mu.Unlock()
	if !first {
		return
	}
	l.m.dropLink(l)
	l.spawn(func() {
		_ = backoff.Sleep(l.ctx, writeGrace)
		l.fail(err)
	})
}

// writeMessage writes a Message frame. The caller holds writeSlot.
func (l *link) writeMessage(to PublicKey, s Sealed, live bool) error {
	frame, err := EncodeMessage(to, s, live)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.sent++
	l.mu.Unlock()
	return l.write(frame)
}

// keepAlive ends a connection whose relay has vanished. A relay pings every 30 s; API
// Gateway never does, but answers pings.
func (l *link) keepAlive() {
	for {
		rest := l.m.cfg.KeepAlive - l.w.idle()
		stalls, stalled := l.q.stalled()
		if rest <= 0 && stalled {
			// The reader waits for OnEvent, so silence does not mean that the relay is gone.
			rest = l.m.cfg.KeepAlive
		}
		if rest > 0 {
			if backoff.Sleep(l.ctx, rest) != nil {
				return
			}
			continue
		}
		ctx, cancel := context.WithTimeout(l.ctx, l.m.cfg.PongTimeout)
		err := l.w.ping(ctx)
		cancel()
		if l.ctx.Err() != nil {
			return
		}
		if again, _ := l.q.stalled(); err != nil && again == stalls {
			l.fail(fmt.Errorf("%w: no pong within %v", ErrSilent, l.m.cfg.PongTimeout))
			return
		}
	}
}
