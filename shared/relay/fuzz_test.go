package relay_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

// The senders of the frame of FuzzFrame.
const (
	fromStranger = iota // has not authenticated
	fromSigner          // the same, but if the frame is an Auth, it is signed
	fromAgent
	fromClient
	fromPairing
	senders
)

// FuzzFrame sends one arbitrary message on a connection in each state.
func FuzzFrame(f *testing.F) {
	s := newStage()
	for _, frame := range templates() {
		for from := range byte(senders) {
			f.Add(from, false, frame)
		}
	}
	f.Add(byte(fromStranger), true, []byte("hello"))
	f.Add(byte(fromAgent), true, []byte("hello"))
	f.Fuzz(func(t *testing.T, from byte, text bool, data []byte) {
		s.reset()
		if err := s.oneFrame(int(from%senders), text, data); err != nil {
			t.Error(err)
		}
		if err := s.check(); err != nil {
			t.Error(err)
		}
	})
}

// oneFrame returns what the relay does wrong with one frame.
func (s *stage) oneFrame(from int, text bool, data []byte) error {
	agent, client, pairing := s.household()
	target := [senders]*line{fromAgent: agent, fromClient: client, fromPairing: pairing}[from]
	if target == nil {
		target = s.connect()
	}
	s.secret(data)
	if from == fromSigner {
		data = signed(data, target.nonce)
	}
	before := len(target.got)
	s.frame(target, data, text)
	answers := target.got[before:]

	if from == fromStranger || from == fromSigner {
		if len(answers) == 0 {
			return fmt.Errorf("no answer to a first frame")
		}
		refused := answers[0].GetAuthError() != nil
		if refused != target.closed || (refused && len(answers) != 1) || (!refused && answers[0].GetAuthOk() == nil) {
			return fmt.Errorf("%d answers to a first frame, the first is a %T, closed is %v", len(answers), answers[0].GetFrame(), target.closed)
		}
	} else {
		if text && len(answers) != 0 {
			return fmt.Errorf("a text message is answered")
		}
		if target.closed {
			return fmt.Errorf("a frame has closed the connection")
		}
	}
	s.reap()
	s.runJobs()
	s.now = s.now.Add(time.Minute + time.Second)
	s.runJobs()
	s.reap()
	if from == fromAgent || from == fromClient { // it works as before
		before := len(target.got)
		s.frame(target, marshal(presenceRequest()), false)
		if target.over {
			return fmt.Errorf("the connection is over later")
		}
		if n := len(target.got); n == before || target.got[n-1].GetPresenceList() == nil {
			return fmt.Errorf("no PresenceList any more")
		}
	}
	return nil
}

// household is an agent, an authorised client and one that has just paired, all
// connected.
func (s *stage) household() (agent, client, pairing *line) {
	pair := func(i int) *line {
		token := pairingToken(i)
		s.frame(agent, marshal(pairingStart(token, 300)), false)
		l := s.connect()
		s.frame(l, marshal(actors[i].auth(2, l.nonce, token)), false)
		return l
	}
	agent = s.connect()
	s.frame(agent, marshal(actors[0].auth(0, agent.nonce, nil)), false)
	s.disconnect(pair(1))
	s.frame(agent, marshal(authorize(actors[1].pub)), false)
	client = s.connect()
	s.frame(client, marshal(actors[1].auth(1, client.nonce, nil)), false)
	pairing = pair(2)
	for _, l := range []*line{agent, client, pairing} {
		if len(l.got) == 0 || l.got[0].GetAuthOk() == nil || l.closed {
			s.fault("the household is not at home")
		}
	}
	s.frame(agent, marshal(pairingStart(pairingToken(0), 300)), false) // one more window
	return agent, client, pairing
}

// signed makes a valid Auth of a frame that could be one: with keys that we have,
// and signed. Everything else in it stays.
func signed(data, nonce []byte) []byte {
	f := new(skaldpb.RelayFrame)
	if proto.Unmarshal(data, f) != nil || f.GetAuth() == nil {
		return data
	}
	a, who := f.GetAuth(), actors[0]
	switch r := a.GetRole().(type) {
	case *skaldpb.Auth_Agent:
		if r.Agent != nil {
			r.Agent.AgentEd25519Pub = who.pub
		}
	case *skaldpb.Auth_Client:
		who = actors[1]
		if r.Client != nil {
			r.Client.ClientEd25519Pub = who.pub
		}
	case *skaldpb.Auth_Pairing:
		who = actors[2]
		if r.Pairing != nil {
			r.Pairing.ClientEd25519Pub = who.pub
		}
	}
	a.Signature = who.sign(nonce)
	return marshal(f)
}

func presenceRequest() *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}}
}

func authorize(keys ...[]byte) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Authorize{Authorize: &skaldpb.Authorize{Clients: keys}}}
}

func pairingStart(token []byte, ttl uint32) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{
		PairingStart: &skaldpb.PairingStart{PairingToken: token, Ttl: ttl}}}
}

func pairingToken(i int) []byte {
	sum := sha256.Sum256(fmt.Append(nil, "pairing token ", i))
	return sum[:]
}

func message(to []byte, ciphertext []byte, live bool) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: &skaldpb.Message{
		Ciphertext: ciphertext, Nonce: []byte("twelve bytes"), Peer: to, Live: live}}}
}

// templates are frames of all kinds, good and nearly good.
func templates() (all [][]byte) {
	nonce := make([]byte, 32)
	text := []byte("this is what nobody may read")
	add := func(frames ...*skaldpb.RelayFrame) {
		for _, f := range frames {
			all = append(all, marshal(f))
		}
	}
	for role := range 3 {
		add(actors[role].auth(role, nonce, pairingToken(0)))
	}
	spoilt := actors[2].auth(2, nonce, pairingToken(0))
	spoilt.GetAuth().GetPairing().ClientX25519Pub = nonce[:31]
	add(spoilt)
	spoilt = message(actors[1].pub, text, true)
	spoilt.GetMessage().Nonce = nonce[:13]
	add(spoilt)
	add(
		message(actors[1].pub, text, false), message(actors[0].pub, text, false),
		message(actors[1].pub, text, true), message(actors[2].pub, text, true),
		message(actors[1].pub, nil, false), message(nonce[:31], text, false), message(nonce, text, true),
		presenceRequest(), authorize(), authorize(actors[1].pub, actors[2].pub), authorize(actors[2].pub, nonce[:1]),
		pairingStart(pairingToken(7), 0), pairingStart(nil, 1<<32-1),
		&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStop{}},
		&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Auth{Auth: &skaldpb.Auth{Signature: make([]byte, 64)}}},
		&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Challenge{Challenge: &skaldpb.Challenge{Nonce: nonce}}},
		&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_ClientPaired{}},
		&skaldpb.RelayFrame{},
	)
	return append(all,
		[]byte{0x0a},             // a field that is cut
		[]byte{0x92, 0x01, 0x00}, // a reserved field
		append(marshal(presenceRequest()), 0x0a, 0), // two of the oneof
	)
}

// FuzzSequence plays a sequence of steps of three peers, encoded in bytes: which peer
// connects in which role, what it sends, valid or damaged, when it disconnects, and when
// time passes.
func FuzzSequence(f *testing.F) {
	for _, story := range stories {
		f.Add(story)
	}
	s := newStage()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		s.reset()
		p := &play{stage: s, tape: data}
		p.run()
		if err := s.check(); err != nil {
			t.Fatalf("after the story: %v", err)
		}
		p.comeHome()
		if err := s.check(); err != nil {
			t.Fatalf("after all have come home: %v", err)
		}
	})
}

// comeHome connects every peer that may connect, and checks that nothing waits after each
// has taken its mailbox.
func (p *play) comeHome() {
	s := p.stage
	s.reap()
	s.runJobs()
	young := s.now.Sub(s.start) < 7*24*time.Hour // neither namespaces nor messages have expired
	for i, a := range actors {
		p.comesHome(a, a.namespace(), 0, young)
		if i > 0 {
			p.comesHome(a, namespace, 1, young)
		}
	}
	s.reap()
	s.runJobs()
	for _, l := range s.lines() {
		s.confirmAll(l)
	}
	left, err := s.table.Everything(context.Background(), "l/")
	if err != nil {
		s.fault("failed to look through the lanes: %w", err)
	}
	if n := len(left); n != 0 && young {
		s.fault("%d entries are left in the mailboxes", n)
	}
}

// comesHome connects an actor, if it is a member of a namespace, and confirms all
// it gets.
func (p *play) comesHome(a actor, namespace []byte, role int, mustGetIn bool) {
	s := p.stage
	m, err := s.r.GetMember(context.Background(), "skald/"+hex.EncodeToString(namespace), hex.EncodeToString(a.pub))
	if err != nil {
		s.fault("failed to look for a member: %w", err)
	}
	if m == nil || m.State == "pending" {
		return
	}
	l := s.connect()
	s.frame(l, marshal(a.auth(role, l.nonce, nil)), false)
	if mustGetIn && (len(l.got) == 0 || l.got[0].GetAuthOk() == nil) {
		s.fault("a member is not let in")
	}
	s.confirmAll(l)
}

func (s *stage) confirmAll(l *line) {
	for rounds := 0; len(l.marks) > 0 && rounds < 1000; rounds++ {
		s.confirm(l, len(l.marks))
	}
}

// TestRandomStories plays stories that begin at home and go on at random: what the
// fuzzer does, with better chances that something comes of it.
func TestRandomStories(t *testing.T) {
	s := newStage()
	for seed := range uint64(randomStories) {
		random := mathrand.New(mathrand.NewPCG(seed, 0))
		tape := slices.Clone(household)
		tape[0] = byte(seed) // what the front can do
		for range 100 + random.IntN(400) {
			tape = append(tape, byte(random.UintN(256)))
		}
		s.reset()
		p := &play{stage: s, tape: tape}
		p.run()
		err := s.check()
		if err == nil {
			p.comeHome()
			err = s.check()
		}
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// randomStories is how many; a constant that is good for a fraction of a second.
const randomStories = 60
