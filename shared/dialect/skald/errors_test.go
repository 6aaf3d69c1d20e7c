package skald_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table/mem"
)

// desk is a relay without a front: the test calls it directly and keeps its answers.
type desk struct {
	t   *testing.T
	r   *relay.Relay
	now time.Time
	n   int
	got map[gateway.Conn][]*skaldpb.RelayFrame
	end map[gateway.Conn]gateway.CloseCode

	agent, phone, pending *who
	token                 []byte // of the window that is open
}

// who is a peer with a key, and its connection.
type who struct {
	key   ed25519.PrivateKey
	pub   []byte
	conn  gateway.Conn
	nonce []byte
}

func newDesk(t *testing.T) *desk {
	d := &desk{
		t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		got: map[gateway.Conn][]*skaldpb.RelayFrame{}, end: map[gateway.Conn]gateway.CloseCode{},
	}
	now := func() time.Time { return d.now }
	d.r = relay.New(relay.Options{
		Table: mem.New(now), Queue: noQueue{}, Front: d, Pusher: noPush{}, Log: slog.New(slog.DiscardHandler),
		Now: now, Random: rand.Reader, NewID: func() string { d.n++; return fmt.Sprint("id", d.n) },
		Limits: relay.Limits{MailboxCap: 3, MessageTTL: time.Hour, MessagesPerMinute: 10, ControlPerMinute: 10},
	})
	d.r.Use(skald.New(d.r, skald.Options{Limits: skald.DefaultLimits()}))
	d.agent, d.phone, d.pending = d.newPeer(), d.newPeer(), d.newPeer()
	d.send(d.agent, d.auth(d.agent, 0, nil))
	d.openWindow()
	d.send(d.phone, d.auth(d.phone, 2, d.token))
	d.send(d.agent, authorize(d.phone.pub))
	d.call(d.phone)
	d.send(d.phone, d.auth(d.phone, 1, nil))
	d.openWindow()
	d.send(d.pending, d.auth(d.pending, 2, d.token))
	d.openWindow()
	d.now = d.now.Add(time.Minute) // new budgets
	return d
}

func (d *desk) Post(_ context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	f := new(skaldpb.RelayFrame)
	if err := proto.Unmarshal(m.Data, f); err != nil || m.Text {
		d.t.Errorf("the relay sent no frame: %v", err)
	}
	d.got[c] = append(d.got[c], f)
	return gateway.Pending, nil
}

func (d *desk) Close(_ context.Context, c gateway.Conn, code gateway.CloseCode, _ string) error {
	if d.end[c] != 0 {
		return gateway.ErrGone
	}
	d.end[c] = code
	return nil
}

func (d *desk) Stat(context.Context, gateway.Conn) (gateway.Stat, error) { return gateway.Stat{}, nil }
func (d *desk) Gone(gateway.Conn) bool                                   { return false }

// newPeer makes a key and connects.
func (d *desk) newPeer() *who {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		d.t.Fatal(err)
	}
	w := &who{key: key, pub: pub}
	d.call(w)
	return w
}

func (d *desk) call(w *who) {
	d.n++
	w.conn = gateway.Conn(fmt.Sprint("c", d.n))
	res, err := d.r.Connect(d.t.Context(), gateway.ConnectEvent{Conn: w.conn, Path: skald.Path, RemoteIP: netip.MustParseAddr("192.0.2.1")})
	f := new(skaldpb.RelayFrame)
	if err != nil || len(res.First) != 1 || proto.Unmarshal(res.First[0].Data, f) != nil {
		d.t.Fatal("no challenge", err)
	}
	w.nonce = f.GetChallenge().GetNonce()
}

func (d *desk) event(w *who, e gateway.FrameEvent) {
	d.t.Helper()
	e.Conn, e.At = w.conn, d.now
	if _, err := d.r.Frame(d.t.Context(), e); err != nil {
		d.t.Errorf("not handled: %v", err)
	}
}

func (d *desk) send(w *who, f *skaldpb.RelayFrame) {
	d.t.Helper()
	d.event(w, gateway.FrameEvent{Data: marshal(f)})
}

func (d *desk) openWindow() {
	d.token = make([]byte, 32)
	_, _ = rand.Read(d.token)
	d.send(d.agent, pairingStart(d.token))
}

// namespace is that of the agent, as the relay has told it.
func (d *desk) namespace() []byte { return d.got[d.agent.conn][0].GetAuthOk().GetNamespaceId() }

// auth makes the Auth of an agent (0), a client (1) or a pairing client (2).
func (d *desk) auth(w *who, role int, token []byte) *skaldpb.RelayFrame {
	a := &skaldpb.Auth{Signature: ed25519.Sign(w.key, append([]byte("skald-relay-auth-v1\x00"), w.nonce...))}
	switch role {
	case 0:
		a.Role = &skaldpb.Auth_Agent{Agent: &skaldpb.AuthAgent{AgentEd25519Pub: w.pub}}
	case 1:
		a.Role = &skaldpb.Auth_Client{Client: &skaldpb.AuthClient{
			NamespaceId: d.namespace(), ClientEd25519Pub: w.pub, DeviceToken: "token", Platform: skaldpb.Platform_PLATFORM_IOS}}
	default:
		a.Role = &skaldpb.Auth_Pairing{Pairing: &skaldpb.AuthPairing{
			NamespaceId: d.namespace(), ClientEd25519Pub: w.pub, ClientX25519Pub: make([]byte, 32), PairingToken: token,
			DeviceToken: "token", Platform: skaldpb.Platform_PLATFORM_ANDROID}}
	}
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Auth{Auth: a}}
}

func authorize(keys ...[]byte) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Authorize{Authorize: &skaldpb.Authorize{Clients: keys}}}
}

func pairingStart(token []byte) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{PairingStart: &skaldpb.PairingStart{PairingToken: token}}}
}

func pairingStop() *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStop{PairingStop: &skaldpb.PairingStop{}}}
}

func presenceRequest() *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}}
}

func message(to []byte, size int, live bool) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: &skaldpb.Message{
		Ciphertext: bytes.Repeat([]byte{7}, size), Nonce: make([]byte, 12), Peer: to, Live: live}}}
}

// with changes an Auth.
func with(f *skaldpb.RelayFrame, change func(*skaldpb.Auth)) *skaldpb.RelayFrame {
	change(f.GetAuth())
	return f
}

// During the handshake each failure is an AuthError with its code of section 12,
// and the connection is closed.
func TestAuthErrors(t *testing.T) {
	short := make([]byte, 31)
	for _, c := range []struct {
		name string
		want string
		tell func(d *desk, w *who)
	}{
		{"oversize", "payload_too_large", func(d *desk, w *who) { d.event(w, gateway.FrameEvent{Oversize: true, Size: 1 << 30}) }},
		{"larger than allowed", "payload_too_large", func(d *desk, w *who) { d.event(w, gateway.FrameEvent{Data: make([]byte, 64<<10+1)}) }},
		{"text", "bad_request", func(d *desk, w *who) { d.event(w, gateway.FrameEvent{Data: marshal(d.auth(w, 0, nil)), Text: true}) }},
		{"not protobuf", "bad_request", func(d *desk, w *who) { d.event(w, gateway.FrameEvent{Data: []byte{0xff, 1}}) }},
		{"nothing", "bad_request", func(d *desk, w *who) { d.event(w, gateway.FrameEvent{}) }},
		{"not Auth", "bad_request", func(d *desk, w *who) { d.send(w, presenceRequest()) }},
		{"a message to the agent", "bad_request", func(d *desk, w *who) { d.send(w, message(d.agent.pub, 9, false)) }},
		{"no role", "bad_request", func(d *desk, w *who) { d.send(w, with(d.auth(w, 0, nil), func(a *skaldpb.Auth) { a.Role = nil })) }},
		{"agent key", "bad_request", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 0, nil), func(a *skaldpb.Auth) { a.GetAgent().AgentEd25519Pub = short }))
		}},
		{"signature length", "bad_request", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 0, nil), func(a *skaldpb.Auth) { a.Signature = a.Signature[:63] }))
		}},
		{"signature", "invalid_signature", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 0, nil), func(a *skaldpb.Auth) { a.Signature[40] ^= 1 }))
		}},
		{"signature of another challenge", "invalid_signature", func(d *desk, w *who) {
			f := d.auth(d.phone, 1, nil)
			f.GetAuth().GetClient().ClientEd25519Pub = d.phone.pub
			d.send(w, f)
		}},
		{"the signature comes before all else", "invalid_signature", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 1, nil), func(a *skaldpb.Auth) { a.Signature[40] ^= 1; a.GetClient().NamespaceId = short }))
		}},
		{"client: namespace length", "bad_request", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 1, nil), func(a *skaldpb.Auth) { a.GetClient().NamespaceId = short }))
		}},
		{"client: platform", "bad_request", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 1, nil), func(a *skaldpb.Auth) { a.GetClient().Platform = 0 }))
		}},
		{"client: unknown platform", "bad_request", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 1, nil), func(a *skaldpb.Auth) { a.GetClient().Platform = 77 }))
		}},
		{"client: device token", "bad_request", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 1, nil), func(a *skaldpb.Auth) { a.GetClient().DeviceToken = strings.Repeat("x", 4097) }))
		}},
		{"client: namespace", "not_found", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 1, nil), func(a *skaldpb.Auth) { a.GetClient().NamespaceId = make([]byte, 32) }))
		}},
		{"client: stranger", "unauthorized", func(d *desk, w *who) { d.send(w, d.auth(w, 1, nil)) }},
		{"client: pending", "unauthorized", func(d *desk, w *who) { d.call(d.pending); *w = *d.pending; d.send(w, d.auth(w, 1, nil)) }},
		{"client: the agent", "unauthorized", func(d *desk, w *who) { x := *d.agent; d.call(&x); *w = x; d.send(w, d.auth(w, 1, nil)) }},
		{"client: revoked", "unauthorized", func(d *desk, w *who) {
			d.send(d.agent, authorize())
			d.call(d.phone)
			*w = *d.phone
			d.send(w, d.auth(w, 1, nil))
		}},
		{"pairing: namespace length", "bad_request", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 2, d.token), func(a *skaldpb.Auth) { a.GetPairing().NamespaceId = short }))
		}},
		{"pairing: x25519 key", "bad_request", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 2, d.token), func(a *skaldpb.Auth) { a.GetPairing().ClientX25519Pub = short }))
		}},
		{"pairing: token length", "bad_request", func(d *desk, w *who) { d.send(w, d.auth(w, 2, short)) }},
		{"pairing: platform", "bad_request", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 2, d.token), func(a *skaldpb.Auth) { a.GetPairing().Platform = 0 }))
		}},
		{"pairing: namespace", "not_found", func(d *desk, w *who) {
			d.send(w, with(d.auth(w, 2, d.token), func(a *skaldpb.Auth) { a.GetPairing().NamespaceId = make([]byte, 32) }))
		}},
		{"pairing: another token", "pairing_closed", func(d *desk, w *who) { d.send(w, d.auth(w, 2, make([]byte, 32))) }},
		{"pairing: no window", "pairing_closed", func(d *desk, w *who) { d.send(d.agent, pairingStop()); d.send(w, d.auth(w, 2, d.token)) }},
		{"pairing: consumed", "pairing_closed", func(d *desk, w *who) {
			x := d.newPeer()
			d.send(x, d.auth(x, 2, d.token))
			d.send(w, d.auth(w, 2, d.token))
		}},
		{"pairing: expired", "pairing_closed", func(d *desk, w *who) {
			d.now = d.now.Add(299 * time.Second)
			d.call(w)
			d.now = d.now.Add(time.Second)
			d.send(w, d.auth(w, 2, d.token))
		}},
		{"pairing: the agent with itself", "bad_request", func(d *desk, w *who) {
			x := *d.agent
			d.call(&x)
			*w = x
			d.send(w, d.auth(w, 2, d.token))
		}},
		{"late", "challenge_timeout", func(d *desk, w *who) { d.now = d.now.Add(30 * time.Second); d.send(w, d.auth(w, 0, nil)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			w := d.newPeer()
			c.tell(d, w)
			got := d.got[w.conn]
			if len(got) != 1 || got[0].GetAuthError().GetCode() != c.want || got[0].GetAuthError().GetMessage() == "" {
				t.Errorf("answered with %v, want AuthError %s", got, c.want)
			}
			code := gateway.ClosePolicy
			if c.want == "payload_too_large" {
				code = gateway.CloseTooLarge
			}
			if d.end[w.conn] != code {
				t.Errorf("closed with %d, want %d", d.end[w.conn], code)
			}
		})
	}
}

// After it each failure is an Error, and the connection stays. Some frames are not
// answered at all.
func TestErrors(t *testing.T) {
	short := make([]byte, 31)
	spoilt := func(to []byte, change func(*skaldpb.Message)) *skaldpb.RelayFrame {
		f := message(to, 9, false)
		change(f.GetMessage())
		return f
	}
	for _, c := range []struct {
		name string
		from string // agent, phone, pending (a connection that was for pairing)
		want string // "" is no answer
		tell func(d *desk, w *who)
	}{
		{"not protobuf", "agent", "bad_request", func(d *desk, w *who) { d.event(w, gateway.FrameEvent{Data: []byte{0xff, 1}}) }},
		{"nothing", "agent", "bad_request", func(d *desk, w *who) { d.event(w, gateway.FrameEvent{}) }},
		{"Auth again", "phone", "bad_request", func(d *desk, w *who) { d.send(w, d.auth(w, 1, nil)) }},
		{"oversize", "agent", "payload_too_large", func(d *desk, w *who) { d.event(w, gateway.FrameEvent{Oversize: true, Size: 1 << 30}) }},
		{"stored and too large", "agent", "payload_too_large", func(d *desk, w *who) { d.send(w, message(d.phone.pub, 64<<10, false)) }},
		{"live and too large", "agent", "payload_too_large", func(d *desk, w *who) { d.send(w, message(d.phone.pub, 512<<10, true)) }},
		{"another frame and too large", "agent", "payload_too_large", func(d *desk, w *who) { d.send(w, authorize(make([]byte, 64<<10))) }},
		{"peer length", "agent", "bad_request", func(d *desk, w *who) { d.send(w, message(short, 9, false)) }},
		{"nonce length", "agent", "bad_request", func(d *desk, w *who) {
			d.send(w, spoilt(d.phone.pub, func(m *skaldpb.Message) { m.Nonce = m.Nonce[:11] }))
		}},
		{"no ciphertext", "agent", "bad_request", func(d *desk, w *who) {
			d.send(w, spoilt(d.phone.pub, func(m *skaldpb.Message) { m.Ciphertext = nil }))
		}},
		{"unknown peer", "agent", "not_found", func(d *desk, w *who) { d.send(w, message(make([]byte, 32), 9, false)) }},
		{"unknown peer, live", "agent", "not_found", func(d *desk, w *who) { d.send(w, message(make([]byte, 32), 9, true)) }},
		{"pending peer", "phone", "not_found", func(d *desk, w *who) { d.send(w, message(d.pending.pub, 9, false)) }},
		{"peer of another namespace", "phone", "not_found", func(d *desk, w *who) {
			x := d.newPeer()
			d.send(x, d.auth(x, 0, nil))
			d.send(w, message(x.pub, 9, true))
		}},
		{"Authorize by a client", "phone", "bad_request", func(d *desk, w *who) { d.send(w, authorize()) }},
		{"PairingStart by a client", "phone", "bad_request", func(d *desk, w *who) { d.send(w, pairingStart(d.token)) }},
		{"PairingStop by a client", "phone", "bad_request", func(d *desk, w *who) { d.send(w, pairingStop()) }},
		{"Authorize with half a key", "agent", "bad_request", func(d *desk, w *who) { d.send(w, authorize(d.phone.pub, short)) }},
		{"PairingStart with half a token", "agent", "bad_request", func(d *desk, w *who) { d.send(w, pairingStart(short)) }},
		{"message by who only pairs", "pending", "bad_request", func(d *desk, w *who) { d.send(w, message(d.agent.pub, 9, false)) }},
		{"presence for who only pairs", "pending", "bad_request", func(d *desk, w *who) { d.send(w, presenceRequest()) }},
		{"Authorize by who only pairs", "pending", "bad_request", func(d *desk, w *who) { d.send(w, authorize(d.pending.pub)) }},
		{"mailbox full", "agent", "queue_full", func(d *desk, w *who) {
			for range 4 { // the phone confirms nothing
				d.send(w, message(d.phone.pub, 9, false))
			}
		}},
		{"too many messages", "phone", "rate_limited", func(d *desk, w *who) {
			for range 11 {
				d.send(w, message(d.agent.pub, 9, true))
			}
		}},
		{"too many control frames", "agent", "rate_limited", func(d *desk, w *who) {
			for range 11 {
				d.send(w, pairingStop())
			}
		}},
		{"too much rubbish", "phone", "rate_limited", func(d *desk, w *who) {
			for range 11 {
				d.event(w, gateway.FrameEvent{Data: []byte{0xff}})
			}
			d.got[w.conn] = slices.Delete(d.got[w.conn], len(d.got[w.conn])-11, len(d.got[w.conn])-1)
		}},
		{"text", "agent", "", func(d *desk, w *who) { d.event(w, gateway.FrameEvent{Data: []byte("hello"), Text: true}) }},
		{"a frame of the relay's", "agent", "", func(d *desk, w *who) {
			d.send(w, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthOk{AuthOk: &skaldpb.AuthOk{}}})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			w := map[string]*who{"agent": d.agent, "phone": d.phone, "pending": d.pending}[c.from]
			before := len(d.got[w.conn])
			c.tell(d, w)
			var codes []string
			for _, f := range d.got[w.conn][before:] {
				if f.GetError() != nil && f.GetError().GetMessage() != "" {
					codes = append(codes, f.GetError().GetCode())
				} else if f.GetAuthError() != nil {
					t.Errorf("an AuthError after the handshake")
				}
			}
			if got := strings.Join(codes, " "); got != c.want {
				t.Errorf("answered with %q, want %q", got, c.want)
			}
			if d.end[w.conn] != 0 {
				t.Errorf("closed with %d", d.end[w.conn])
			}
		})
	}
}
