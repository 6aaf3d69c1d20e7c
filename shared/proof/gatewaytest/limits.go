package gatewaytest

import (
	"context"
	"strings"

	"github.com/coder/websocket"

	"blindpost/shared/gateway"
)

// limited makes the handler set a read limit at Connect.
func (s *suite) limited(limit int64) {
	s.rec.OnConnect = func(context.Context, gateway.ConnectEvent) (gateway.ConnectResult, error) {
		return gateway.ConnectResult{ReadLimit: limit}, nil
	}
}

// wantOversize expects that the last frame was reported as too large, and the
// connection closed for it.
func (s *suite) wantOversize(p *peer, id gateway.Conn, f gateway.FrameEvent, size int64) {
	s.Helper()
	if !f.Oversize || f.Data != nil || f.Size != size {
		s.Errorf("frame says oversize %v, %d bytes of data, size %d", f.Oversize, len(f.Data), f.Size)
	}
	if ce := p.wantClose(); s.CloseCodes && ce.Code != websocket.StatusMessageTooBig {
		s.Errorf("close frame says %d %q", ce.Code, ce.Reason)
	}
	if e := s.rec.WaitDisconnect(s.T, id); e.Code != gateway.CloseTooLarge {
		s.Errorf("disconnect says %d %q", e.Code, e.Reason)
	}
}

func testReadLimit(s *suite) {
	s.needs(s.ReadLimits)
	s.limited(1000)
	s.rec.OnFrame = func(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
		if !e.Oversize {
			return gateway.FrameResult{}, nil
		}
		_, err := s.Front.Post(ctx, e.Conn, binary("too large, sorry"))
		return gateway.FrameResult{}, err
	}
	p, id := s.dial("/")
	p.send(false, []byte(strings.Repeat("x", 1000)))
	p.send(true, []byte(strings.Repeat("x", 1001)))
	frames := s.rec.WaitFrames(s.T, id, 2)
	if frames[0].Oversize || len(frames[0].Data) != 1000 {
		s.Errorf("a message of exactly the limit: oversize %v, %d bytes", frames[0].Oversize, len(frames[0].Data))
	}
	if !frames[1].Text {
		s.Error("the oversize message was text")
	}
	p.want(false, "too large, sorry")
	s.wantOversize(p, id, frames[1], 1001)
}

// testDefaultReadLimit leaves the limit to the front, which must have one.
func testDefaultReadLimit(s *suite) {
	s.needs(s.ReadLimits)
	p, id := s.dial("/")
	const size = 64 << 20
	p.readOn()
	// The front may close before all of it is written.
	go func() { _ = p.trySend(false, make([]byte, size)) }()
	frames := s.rec.WaitFrames(s.T, id, 1)
	if !frames[0].Oversize || frames[0].Data != nil {
		s.Errorf("frame says oversize %v, %d bytes of data", frames[0].Oversize, len(frames[0].Data))
	}
	s.rec.WaitDisconnect(s.T, id)
}

func testReadLimitChanges(s *suite) {
	s.needs(s.ReadLimits)
	s.limited(100)
	s.rec.OnFrame = func(_ context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
		switch {
		case string(e.Data) == "raise":
			return gateway.FrameResult{ReadLimit: 1 << 20}, nil
		case string(e.Data) == "lower":
			return gateway.FrameResult{ReadLimit: 50}, nil
		}
		return gateway.FrameResult{}, nil
	}
	p, id := s.dial("/")
	// Sent in one go: each frame must meet the limit that the one before it set.
	p.send(false, []byte("raise"))
	p.send(false, make([]byte, 500<<10))
	p.send(false, []byte("lower"))
	p.send(false, make([]byte, 50))
	p.send(false, make([]byte, 51))
	frames := s.rec.WaitFrames(s.T, id, 5)
	if len(frames[1].Data) != 500<<10 || len(frames[3].Data) != 50 {
		s.Errorf("got %d and %d bytes", len(frames[1].Data), len(frames[3].Data))
	}
	s.wantOversize(p, id, frames[4], 51)
}
