package gatewaytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"blindpost/shared/gateway"
)

// post posts what must be taken.
func (s *suite) post(id gateway.Conn, m gateway.Message) gateway.Outcome {
	s.Helper()
	out, err := s.Front.Post(s.Context(), id, m)
	if err != nil {
		s.Fatalf("failed to post: %v", err)
	}
	return out
}

func binary(s string) gateway.Message { return gateway.Message{Data: []byte(s)} }

func testPostBeforeConnectReturned(s *suite) {
	s.rec.OnConnect = func(ctx context.Context, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
		if _, err := s.Front.Post(ctx, e.Conn, binary("too early")); !errors.Is(err, gateway.ErrGone) {
			s.Errorf("post: %v", err)
		}
		if err := s.Front.Close(ctx, e.Conn, gateway.CloseNormal, ""); !errors.Is(err, gateway.ErrGone) {
			s.Errorf("close: %v", err)
		}
		if _, err := s.Front.Stat(ctx, e.Conn); !errors.Is(err, gateway.ErrGone) {
			s.Errorf("stat: %v", err)
		}
		if s.Front.Gone(e.Conn) {
			s.Error("known to be gone before it is open")
		}
		return gateway.ConnectResult{}, nil
	}
	p, id := s.dial("/")
	s.post(id, binary("now"))
	p.want(false, "now")
}

// testFirstPost has a job that speaks first and is as early as it can be.
func testFirstPost(s *suite) {
	var wg sync.WaitGroup
	defer wg.Wait()
	s.rec.OnConnect = func(_ context.Context, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
		wg.Go(func() {
			for start := time.Now(); time.Since(start) < patience; {
				_, err := s.Front.Post(context.Background(), e.Conn, binary("challenge"))
				if err == nil {
					return
				}
				if !errors.Is(err, gateway.ErrGone) {
					s.Errorf("post: %v", err)
					return
				}
			}
			s.Error("the connection never opened")
		})
		return gateway.ConnectResult{}, nil
	}
	for range 20 {
		s.dialOnly("/").want(false, "challenge")
	}
}

func testPostOrder(s *suite) {
	p, id := s.dial("/")
	const each, posters = 500, 3
	var wg sync.WaitGroup
	for g := range posters {
		wg.Go(func() {
			for i := range each {
				if _, err := s.Front.Post(s.Context(), id, binary(fmt.Sprintf("%d %d", g, i))); err != nil {
					s.Errorf("post: %v", err)
					return
				}
			}
		})
	}
	next := make([]int, posters)
	for range each * posters {
		_, data := p.read()
		var g, i int
		if s.Base64 {
			data = decode(data)
		}
		if _, err := fmt.Sscanf(string(data), "%d %d", &g, &i); err != nil || g >= posters {
			s.Fatalf("got %q", data)
		}
		if i != next[g] {
			s.Fatalf("message %d of poster %d came when %d was due", i, g, next[g])
		}
		next[g]++
	}
	wg.Wait()
}

func testPostContent(s *suite) {
	p, id := s.dial("/")
	for _, c := range contents() {
		if s.MaxMessage > 0 && len(c) > s.MaxMessage {
			continue
		}
		s.post(id, gateway.Message{Data: c})
		p.want(false, string(c))
	}
	s.post(id, gateway.Message{Data: []byte("grüße, 世界"), Text: true})
	p.want(true, "grüße, 世界")
}

func testPostCopies(s *suite) {
	p, id := s.dial("/")
	data := []byte("original")
	for range 100 {
		copy(data, "original")
		s.post(id, gateway.Message{Data: data})
		copy(data, "xxxxxxxx")
	}
	for range 100 {
		p.want(false, "original")
	}
}

func testPostFromHandler(s *suite) {
	s.rec.OnFrame = func(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
		_, err := s.Front.Post(ctx, e.Conn, gateway.Message{Data: e.Data, Text: e.Text})
		return gateway.FrameResult{}, err
	}
	p, _ := s.dial("/")
	for i := range 100 {
		p.send(i%2 == 0, fmt.Appendf(nil, "echo %d", i))
	}
	for i := range 100 {
		p.want(i%2 == 0, fmt.Sprintf("echo %d", i))
	}
}

func testCloseFlushes(s *suite) {
	p, id := s.dial("/")
	const n = 200
	for i := range n {
		s.post(id, binary(fmt.Sprint(i)))
	}
	if err := s.Front.Close(s.Context(), id, gateway.CloseRevoked, "no longer paired"); err != nil {
		s.Fatalf("close: %v", err)
	}
	for i := range n {
		p.want(false, fmt.Sprint(i))
	}
	ce := p.wantClose()
	if s.CloseCodes && (ce.Code != 4003 || ce.Reason != "no longer paired") {
		s.Errorf("close frame says %d %q", ce.Code, ce.Reason)
	}
	if s.KnowsEnds {
		if e := s.rec.WaitDisconnect(s.T, id); s.CloseCodes && (e.Code != gateway.CloseRevoked || e.Reason != "no longer paired") {
			s.Errorf("disconnect says %d %q", e.Code, e.Reason)
		}
	}
}

// wantGone expects that every action on a connection answers ErrGone. (What Gone
// says is another matter: it waits for Disconnect.)
func (s *suite) wantGone(id gateway.Conn) {
	s.Helper()
	if _, err := s.Front.Post(s.Context(), id, binary("x")); !errors.Is(err, gateway.ErrGone) {
		s.Errorf("post: %v", err)
	}
	if err := s.Front.Close(s.Context(), id, gateway.CloseNormal, ""); !errors.Is(err, gateway.ErrGone) {
		s.Errorf("close: %v", err)
	}
	if _, err := s.Front.Stat(s.Context(), id); !errors.Is(err, gateway.ErrGone) {
		s.Errorf("stat: %v", err)
	}
}

func testAfterClose(s *suite) {
	p, id := s.dial("/")
	if s.Front.Gone(id) {
		s.Error("an open connection is known to be gone")
	}
	if err := s.Front.Close(s.Context(), id, gateway.CloseNormal, "done"); err != nil {
		s.Fatalf("close: %v", err)
	}
	s.wantGone(id) // at once, the peer has not answered yet
	p.wantClose()
	if s.KnowsEnds {
		s.rec.WaitDisconnect(s.T, id)
		s.wantGone(id)
		s.wantKnownGone(id)
	}
}

// wantKnownGone waits until the front knows that a connection is gone, which it
// does at the latest when Disconnect has returned.
func (s *suite) wantKnownGone(id gateway.Conn) {
	s.Helper()
	for deadline := time.Now().Add(patience); !s.Front.Gone(id); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.Error("not known to be gone")
			return
		}
	}
}

// testGoneWaitsForDisconnect: as long as the Disconnect of a connection has not
// returned, the front does not say that it is gone, for whoever hears that takes
// the member behind it for offline.
func testGoneWaitsForDisconnect(s *suite) {
	if !s.KnowsEnds {
		return
	}
	entered, release := make(chan struct{}), make(chan struct{})
	s.rec.OnDisconnect = func(context.Context, gateway.DisconnectEvent) error {
		close(entered)
		<-release
		return nil
	}
	p, id := s.dial("/")
	_ = p.ws.CloseNow()
	<-entered
	if s.Front.Gone(id) {
		s.Error("known to be gone before its Disconnect has returned")
	}
	if _, err := s.Front.Post(s.Context(), id, binary("x")); !errors.Is(err, gateway.ErrGone) {
		s.Errorf("post: %v", err)
	}
	close(release)
	s.wantKnownGone(id)
}

// testFirstWords: what the handler wants to say first arrives first, whoever else
// posts as soon as that is possible.
func testFirstWords(s *suite) {
	s.rec.OnConnect = func(ctx context.Context, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
		go func() {
			for !s.FirstByJob {
				_, err := s.Front.Post(context.WithoutCancel(ctx), e.Conn, binary("later"))
				if err == nil {
					return
				}
			}
		}()
		return gateway.ConnectResult{First: []gateway.Message{binary("first"), {Data: []byte("second"), Text: true}}}, nil
	}
	p, id := s.dial("/")
	p.want(false, "first")
	p.want(true, "second")
	if s.FirstByJob {
		s.post(id, binary("later"))
	}
	p.want(false, "later")
}

func testCloseWhileHandling(s *suite) {
	release := make(chan struct{})
	s.rec.OnFrame = func(context.Context, gateway.FrameEvent) (gateway.FrameResult, error) {
		<-release
		return gateway.FrameResult{}, nil
	}
	p, id := s.dial("/")
	p.send(false, []byte("work"))
	s.rec.WaitFrames(s.T, id, 1)
	if err := s.Front.Close(s.Context(), id, gateway.ClosePolicy, "not you"); err != nil {
		s.Fatalf("close: %v", err)
	}
	if ce := p.wantClose(); s.CloseCodes && ce.Code != 1008 {
		s.Errorf("close frame says %d %q", ce.Code, ce.Reason)
	}
	close(release)
	if s.KnowsEnds {
		s.rec.WaitDisconnect(s.T, id)
	}
}

// testCloseFromHandler also shows that frames after a close are not handled.
func testCloseFromHandler(s *suite) {
	s.rec.OnFrame = func(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
		if _, err := s.Front.Post(ctx, e.Conn, binary("bye")); err != nil {
			return gateway.FrameResult{}, err
		}
		return gateway.FrameResult{}, s.Front.Close(ctx, e.Conn, gateway.CloseReplaced, "replaced")
	}
	p, id := s.dial("/")
	p.send(false, []byte("one"))
	p.want(false, "bye")
	if ce := p.wantClose(); s.CloseCodes && ce.Code != 4001 {
		s.Errorf("close frame says %d %q", ce.Code, ce.Reason)
	}
	if s.KnowsEnds {
		s.rec.WaitDisconnect(s.T, id)
	}
}

// testPostToTheGone posts until the front has noticed that the peer vanished.
func testPostToTheGone(s *suite) {
	s.needs(s.KnowsEnds)
	p, id := s.dial("/")
	_ = p.ws.CloseNow()
	for start := time.Now(); ; {
		_, err := s.Front.Post(s.Context(), id, binary("anyone?"))
		if errors.Is(err, gateway.ErrGone) {
			break
		}
		if err != nil || time.Since(start) > patience {
			s.Fatalf("post: %v", err)
		}
	}
	s.rec.WaitDisconnect(s.T, id)
	s.wantGone(id)
}

func testStat(s *suite) {
	before := time.Now()
	p, id := s.dial("/")
	first, err := s.Front.Stat(s.Context(), id)
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	if d := first.ConnectedAt.Sub(before); d < -time.Second || d > patience {
		s.Errorf("connected at %v", first.ConnectedAt)
	}
	if first.LastActiveAt.Before(first.ConnectedAt) {
		s.Errorf("active at %v, before it connected", first.LastActiveAt)
	}
	p.send(false, []byte("hello"))
	frame := s.rec.WaitFrames(s.T, id, 1)[0]
	second, err := s.Front.Stat(s.Context(), id)
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	if !second.ConnectedAt.Equal(first.ConnectedAt) {
		s.Errorf("connected at %v, then at %v", first.ConnectedAt, second.ConnectedAt)
	}
	if second.LastActiveAt.Before(frame.At.Add(-time.Second)) {
		s.Errorf("active at %v, but a frame came at %v", second.LastActiveAt, frame.At)
	}
}

func testTooLarge(s *suite) {
	s.needs(s.MaxMessage > 0)
	p, id := s.dial("/")
	if _, err := s.Front.Post(s.Context(), id, gateway.Message{Data: make([]byte, s.MaxMessage+1)}); !errors.Is(err, gateway.ErrTooLarge) {
		s.Errorf("post: %v", err)
	}
	s.post(id, binary("still here"))
	p.want(false, "still here")
}
