package gatewaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"blindpost/shared/gateway"
)

func testConnectEvent(s *suite) {
	before := time.Now()
	if s.Header == nil {
		s.Header = http.Header{}
	}
	s.Header.Set("X-Suite", "a value")
	_, id := s.dial("/some/path?q=1&q=2&r=%20")
	e := s.rec.Events()[0].Connect
	switch {
	case id == "" || e.Conn != id:
		s.Errorf("connection id is %q", e.Conn)
	case !e.RemoteIP.IsValid():
		s.Error("no remote address")
	case s.Paths && e.Path != "/some/path":
		s.Errorf("path is %q", e.Path)
	case fmt.Sprint(e.Query["q"]) != "[1 2]" || e.Query.Get("r") != " ":
		s.Errorf("query is %v", e.Query)
	case e.Header.Get("X-Suite") != "a value":
		s.Errorf("header is %v", e.Header)
	case e.At.Before(before.Add(-time.Second)) || e.At.After(time.Now().Add(time.Second)):
		s.Errorf("time is %v", e.At)
	}
}

func testUniqueIDs(s *suite) {
	seen := make(map[gateway.Conn]bool)
	for range 20 {
		p, id := s.dial("/")
		if seen[id] {
			s.Fatalf("id %s came twice", id)
		}
		seen[id] = true
		_ = p.ws.CloseNow()
	}
}

func testRefusal(s *suite) {
	var id gateway.Conn
	answer := gateway.ConnectResult{Status: http.StatusForbidden}
	s.rec.OnConnect = func(_ context.Context, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
		id = e.Conn
		return answer, nil
	}
	res, body := s.dialRefused("/")
	if res.StatusCode != http.StatusForbidden {
		s.Errorf("status is %d", res.StatusCode)
	}
	var says struct{ Error, Message string }
	if s.RefusalBody && (json.Unmarshal([]byte(body), &says) != nil || says.Error == "" || says.Message == "") {
		s.Errorf("body is %q, want an error code and a message as JSON", body)
	}
	answer = gateway.ConnectResult{
		Status: http.StatusTooManyRequests,
		Header: http.Header{"Retry-After": {"17"}, "Content-Type": {"text/plain"}},
		Body:   []byte("too fast"),
	}
	res, body = s.dialRefused("/")
	if res.StatusCode != http.StatusTooManyRequests {
		s.Errorf("status is %d", res.StatusCode)
	}
	if s.RefusalBody && (body != "too fast" || res.Header.Get("Retry-After") != "17" || res.Header.Get("Content-Type") != "text/plain") {
		s.Errorf("answer is %q with %v", body, res.Header)
	}
	if _, err := s.Front.Post(s.Context(), id, gateway.Message{Data: []byte("x")}); !errors.Is(err, gateway.ErrGone) {
		s.Errorf("post to a refused connection: %v", err)
	}
	// A connection after it is the sign that no Disconnect is under way.
	s.rec.OnConnect = nil
	s.dial("/")
	for _, e := range s.rec.Events() {
		if e.Disconnect != nil {
			s.Error("a refused connection was disconnected")
		}
	}
}

func testConnectError(s *suite) {
	s.rec.OnConnect = func(context.Context, gateway.ConnectEvent) (gateway.ConnectResult, error) {
		return gateway.ConnectResult{}, errors.New("failed on purpose")
	}
	if res, body := s.dialRefused("/"); res.StatusCode < 500 || bytes.Contains([]byte(body), []byte("on purpose")) {
		s.Errorf("status %d, body %q", res.StatusCode, body)
	}
}

func testFrameOrder(s *suite) {
	p, id := s.dial("/")
	const n = 500
	for i := range n {
		p.send(i%3 == 0, fmt.Appendf(nil, "frame %d", i))
	}
	for i, f := range s.rec.WaitFrames(s.T, id, n) {
		if want := fmt.Sprintf("frame %d", i); string(f.Data) != want || f.Text != (i%3 == 0) {
			s.Fatalf("frame %d is %q, text %v", i, f.Data, f.Text)
		}
	}
}

// contents are messages of which bytes may get lost or changed on the way.
func contents() [][]byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	cs := [][]byte{all, bytes.Repeat(all, 100), {0}, []byte("\r\n\r\n"), bytes.Repeat([]byte{0}, 1000)}
	for _, n := range []int{1, 10, 16, 125, 126, 127, 16<<10 - 8, 16 << 10, 65535, 65536} {
		cs = append(cs, bytes.Repeat([]byte{'a', 0xc3, 0xa4, '-'}, n/4+1)[:n])
	}
	return cs
}

func testFrameContent(s *suite) {
	s.rec.OnConnect = func(context.Context, gateway.ConnectEvent) (gateway.ConnectResult, error) {
		return gateway.ConnectResult{ReadLimit: 1 << 20}, nil
	}
	p, id := s.dial("/")
	cs := contents()
	for _, c := range cs {
		p.send(false, c)
	}
	p.send(true, []byte("grüße, 世界"))
	p.send(true, nil)
	got := s.rec.WaitFrames(s.T, id, len(cs)+2)
	for i, c := range cs {
		if !bytes.Equal(got[i].Data, c) || got[i].Text || got[i].Oversize {
			s.Errorf("message %d: got %d bytes, text %v, want %d bytes", i, len(got[i].Data), got[i].Text, len(c))
		}
	}
	if f := got[len(cs)]; string(f.Data) != "grüße, 世界" || !f.Text {
		s.Errorf("got %q, text %v", f.Data, f.Text)
	}
	// Nothing in base64 is nothing.
	if f := got[len(cs)+1]; len(f.Data) != 0 || f.Text == s.Base64 {
		s.Errorf("got %q, text %v", f.Data, f.Text)
	}
	for i, f := range got {
		if age := time.Since(f.At); age < -time.Second || age > patience {
			s.Errorf("frame %d came at %v", i, f.At)
		}
	}
}

// testParallel blocks one connection in its handler until another one has been
// served. That the second frame of the first waits is watched by the recorder.
func testParallel(s *suite) {
	release := make(chan struct{})
	s.rec.OnFrame = func(_ context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
		if string(e.Data) == "block" {
			<-release
		}
		return gateway.FrameResult{}, nil
	}
	a, idA := s.dial("/")
	b, idB := s.dial("/")
	a.send(false, []byte("block"))
	a.send(false, []byte("second"))
	s.rec.WaitFrames(s.T, idA, 1)
	b.send(false, []byte("other"))
	s.rec.WaitFrames(s.T, idB, 1)
	if n := len(s.rec.WaitFrames(s.T, idA, 1)); n != 1 {
		s.Errorf("%d frames of the blocked connection were handled", n)
	}
	close(release)
	s.rec.WaitFrames(s.T, idA, 2)
}

func testPeerCloses(s *suite) {
	s.needs(s.KnowsEnds)
	p, id := s.dial("/")
	p.send(false, []byte("last"))
	if err := p.ws.Close(websocket.StatusCode(4321), "had enough"); err != nil {
		s.Errorf("the close was not answered properly: %v", err)
	}
	e := s.rec.WaitDisconnect(s.T, id)
	if s.CloseCodes && (e.Code != 4321 || e.Reason != "had enough") {
		s.Errorf("disconnect says %d %q", e.Code, e.Reason)
	}
	if len(s.rec.WaitFrames(s.T, id, 1)) != 1 {
		s.Error("the frame before the close was lost")
	}
	s.wantKnownGone(id)
}

func testPeerVanishes(s *suite) {
	s.needs(s.KnowsEnds)
	p, id := s.dial("/")
	p.send(false, []byte("hello"))
	s.rec.WaitFrames(s.T, id, 1)
	_ = p.ws.CloseNow()
	if e := s.rec.WaitDisconnect(s.T, id); s.CloseCodes && e.Code != gateway.CloseAbnormal {
		s.Errorf("disconnect says %d %q", e.Code, e.Reason)
	}
	s.wantKnownGone(id)
}

// testDisconnectLast lets the peer vanish while a frame is handled; the recorder
// complains if Disconnect comes before the handler is done.
func testDisconnectLast(s *suite) {
	s.needs(s.KnowsEnds)
	release := make(chan struct{})
	s.rec.OnFrame = func(context.Context, gateway.FrameEvent) (gateway.FrameResult, error) {
		<-release
		return gateway.FrameResult{}, nil
	}
	p, id := s.dial("/")
	p.send(false, []byte("work"))
	s.rec.WaitFrames(s.T, id, 1)
	_ = p.ws.CloseNow()
	// Another connection comes and goes meanwhile.
	q, other := s.dial("/")
	_ = q.ws.Close(websocket.StatusNormalClosure, "")
	s.rec.WaitDisconnect(s.T, other)
	close(release)
	s.rec.WaitDisconnect(s.T, id)
}

func testFrameError(s *suite) {
	s.needs(s.ClosesOnError)
	s.rec.OnFrame = func(context.Context, gateway.FrameEvent) (gateway.FrameResult, error) {
		return gateway.FrameResult{}, errors.New("failed on purpose")
	}
	p, id := s.dial("/")
	p.send(false, []byte("one"))
	if ce := p.wantClose(); s.CloseCodes && (ce.Code != websocket.StatusInternalError || ce.Reason == "failed on purpose") {
		s.Errorf("close frame says %d %q", ce.Code, ce.Reason)
	}
	if e := s.rec.WaitDisconnect(s.T, id); s.CloseCodes && e.Code != gateway.CloseInternal {
		s.Errorf("disconnect says %d %q", e.Code, e.Reason)
	}
}
