package gatewaytest

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"blindpost/shared/gateway"
)

func decode(b []byte) []byte {
	out, _ := base64.StdEncoding.AppendDecode(nil, b) // a wrong one differs
	return out
}

func marked(s string, mark uint64) gateway.Message {
	return gateway.Message{Data: []byte(s), Mark: mark}
}

func testOutcome(s *suite) {
	p, id := s.dial("/")
	want := gateway.Sent
	if s.Confirms {
		want = gateway.Pending
	}
	if got := s.post(id, binary("one")); got != want {
		s.Errorf("outcome is %d", got)
	}
	p.want(false, "one")
	if got := s.post(id, marked("two", 7)); got != want {
		s.Errorf("outcome with a mark is %d", got)
	}
	p.want(false, "two")
}

// confirmedSoFar says which marks have been confirmed by now.
func (s *suite) confirmedSoFar(id gateway.Conn) []uint64 {
	return s.rec.WaitMarks(s.T, id, 0)
}

// testConfirmed uses that the client answers pings only while it reads.
func testConfirmed(s *suite) {
	s.needs(s.Confirms)
	p, id := s.dial("/")
	s.post(id, marked("one", 11))
	// The front has had the time to write and to hear from the peer.
	p.send(false, []byte("still not reading"))
	s.rec.WaitFrames(s.T, id, 1)
	if got := s.confirmedSoFar(id); len(got) != 0 {
		s.Errorf("confirmed %v before the peer has read anything", got)
	}
	p.want(false, "one")
	p.readOn()
	if got := s.rec.WaitMarks(s.T, id, 1); !slices.Equal(got, []uint64{11}) {
		s.Errorf("confirmed %v", got)
	}
}

func testConfirmedOrder(s *suite) {
	s.needs(s.Confirms)
	p, id := s.dial("/")
	p.readOn()
	var want []uint64
	for i := range uint64(1000) {
		if i%10 == 0 {
			s.post(id, binary("without a mark"))
		}
		mark := i*i + 1
		s.post(id, marked(fmt.Sprint(i), mark))
		want = append(want, mark)
	}
	if got := s.rec.WaitMarks(s.T, id, len(want)); !slices.Equal(got, want) {
		s.Errorf("confirmed %d marks, the first %v, in another order", len(got), got[:10])
	}
	// Later posts do not bring an old mark again.
	s.post(id, marked("last", 5))
	if got := s.rec.WaitMarks(s.T, id, len(want)+1); got[len(got)-1] != 5 || len(got) != len(want)+1 {
		s.Errorf("confirmed %d marks, the last %d", len(got), got[len(got)-1])
	}
}

func testUnconfirmed(s *suite) {
	s.needs(s.Confirms && s.KnowsEnds)
	p, id := s.dial("/")
	for i := range uint64(10) {
		s.post(id, marked("never read", i+1))
	}
	p.send(false, []byte("alive"))
	s.rec.WaitFrames(s.T, id, 1)
	_ = p.ws.CloseNow()
	s.rec.WaitDisconnect(s.T, id)
	if got := s.confirmedSoFar(id); len(got) != 0 {
		s.Errorf("confirmed %v to a peer that has not read", got)
	}
}

// testConfirmedSerial mixes frames and confirmations; the recorder complains
// about two at once.
func testConfirmedSerial(s *suite) {
	s.needs(s.Confirms)
	s.rec.OnFrame = func(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
		_, err := s.Front.Post(ctx, e.Conn, marked(string(e.Data), uint64(len(e.Data))))
		return gateway.FrameResult{}, err
	}
	p, id := s.dial("/")
	p.readOn()
	const n = 300
	for range n {
		p.send(false, []byte("echo"))
	}
	s.rec.WaitFrames(s.T, id, n)
	s.rec.WaitMarks(s.T, id, n)
}
