package relay_test

import (
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"bytes"
	"context"
	"encoding/binary"
	"google.golang.org/protobuf/proto"
)

// front is a front in the hands of a test: it carries everything, and no event happens by
// itself.
type front struct {
	s       *stage
	conns   map[gateway.Conn]*line
	n       int
	outcome gateway.Outcome
	// before is called before a post; it may take time, or fail.
	before func(id gateway.Conn) error
	// lookAgain has a post find out that the connection was closed meanwhile.
	lookAgain bool
	// closeFails is a connection that cannot be closed.
	closeFails gateway.Conn
}

// line is one connection.
type line struct {
	id     gateway.Conn
	nonce  []byte
	closed bool // by the relay; its Disconnect is still to come
	over   bool
	got    []*skaldpb.RelayFrame
	marks  []uint64 // not confirmed
	number int
	who    string         // the key behind it; "" before Auth
	wire   [][]byte       // what the peer has sent and the relay has not handled
	last   map[string]int // number of the last message, by sender
}

var _ gateway.Front = (*front)(nil)

func (f *front) Post(_ context.Context, id gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	l := f.conns[id]
	if l == nil || l.closed || l.over {
		return 0, gateway.ErrGone
	}
	if f.before != nil {
		if err := f.before(id); err != nil {
			return 0, err
		}
		if f.lookAgain && l.closed {
			return 0, gateway.ErrGone
		}
	}
	frame := new(skaldpb.RelayFrame)
	if err := proto.Unmarshal(m.Data, frame); err != nil || m.Text {
		f.s.fault("the relay sent something that is no frame: %v", err)
		return f.outcome, nil
	}
	if err := wellFormed(frame); err != nil {
		f.s.fault("the relay sent a frame that %w", err)
	}
	l.got = append(l.got, frame)
	f.s.arrives(l, frame.GetMessage())
	if m.Mark != 0 && f.outcome == gateway.Pending {
		l.marks = append(l.marks, m.Mark)
	}
	return f.outcome, nil
}

// letter is a message that was sent.
type letter struct {
	ciphertext []byte
	conns      int // how many connections there had been
}

// label begins a ciphertext with a number, for arrives.
func (s *stage) label(ciphertext []byte) {
	binary.BigEndian.PutUint32(ciphertext, uint32(len(s.sent)))
	s.sent = append(s.sent, letter{ciphertext, s.front.n})
}

// arrives checks that on one connection the messages of one sender come in the
// order in which they were sent, and that a live one does not come on a connection
// that was made after it was handled.
func (s *stage) arrives(l *line, m *skaldpb.Message) {
	if len(m.GetCiphertext()) < 4 {
		return
	}
	n := int(binary.BigEndian.Uint32(m.GetCiphertext()))
	if n >= len(s.sent) || !bytes.Equal(s.sent[n].ciphertext, m.GetCiphertext()) {
		return // made by a mutation
	}
	if m.GetLive() && l.number > s.sent[n].conns {
		s.fault("live message %d has waited for another connection", n)
	}
	from := string(m.GetPeer())
	if last, ok := l.last[from]; ok && n <= last {
		s.fault("message %d comes after message %d", n, last)
	}
	if l.last == nil {
		l.last = map[string]int{}
	}
	l.last[from] = n
}

func (f *front) Close(_ context.Context, id gateway.Conn, _ gateway.CloseCode, _ string) error {
	l := f.conns[id]
	if l == nil || l.closed || l.over {
		return gateway.ErrGone
	}
	if id == f.closeFails {
		return errTrouble
	}
	l.closed = true
	return nil
}

func (f *front) Stat(_ context.Context, id gateway.Conn) (gateway.Stat, error) {
	if l := f.conns[id]; l == nil || l.closed || l.over {
		return gateway.Stat{}, gateway.ErrGone
	}
	return gateway.Stat{ConnectedAt: f.s.now, LastActiveAt: f.s.now}, nil
}

func (f *front) Gone(id gateway.Conn) bool { return f.conns[id] == nil || f.conns[id].over }
