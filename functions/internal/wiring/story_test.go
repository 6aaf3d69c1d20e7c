package wiring_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/proto"

	"blindpost/functions/internal/wiring"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/proof/suite"
	"blindpost/shared/table"
)

// caller is a Skald peer that speaks base64 in text frames, as API Gateway has it.
type caller struct {
	t   *testing.T
	ws  *websocket.Conn
	key ed25519.PrivateKey
	// presence is what was last heard about others.
	presence map[string]skaldpb.Status
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func public(key ed25519.PrivateKey) []byte { return key.Public().(ed25519.PublicKey) }

// namespaceOf is the namespace of an agent.
func namespaceOf(agent ed25519.PrivateKey) []byte {
	sum := sha256.Sum256(append([]byte("skald-namespace-v1\x00"), public(agent)...))
	return sum[:]
}

// call dials, waits for the challenge and answers it.
func (h *house) call(key ed25519.PrivateKey, auth *skaldpb.Auth) *caller {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	h.t.Cleanup(cancel)
	ws, _, err := websocket.Dial(ctx, h.URL()+"/v1/ws", &websocket.DialOptions{HTTPClient: h.Client()})
	if err != nil {
		h.t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	h.t.Cleanup(func() { _ = ws.CloseNow() })
	c := &caller{h.t, ws, key, map[string]skaldpb.Status{}}
	nonce := c.read().GetChallenge().GetNonce()
	auth.Signature = ed25519.Sign(key, append([]byte("skald-relay-auth-v1\x00"), nonce...))
	c.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Auth{Auth: auth}})
	if f := c.read(); f.GetAuthOk() == nil {
		h.t.Fatalf("not let in: %v", f)
	}
	return c
}

func (h *house) agent(key ed25519.PrivateKey) *caller {
	return h.call(key, &skaldpb.Auth{Role: &skaldpb.Auth_Agent{Agent: &skaldpb.AuthAgent{AgentEd25519Pub: public(key)}}})
}

func (h *house) client(key ed25519.PrivateKey, namespace []byte) *caller {
	return h.call(key, &skaldpb.Auth{Role: &skaldpb.Auth_Client{Client: &skaldpb.AuthClient{
		NamespaceId: namespace, ClientEd25519Pub: public(key), DeviceToken: "the-phones-token", Platform: skaldpb.Platform_PLATFORM_ANDROID,
	}}})
}

func (c *caller) send(f *skaldpb.RelayFrame) {
	c.t.Helper()
	data, err := proto.Marshal(f)
	if err != nil {
		c.t.Fatal(err)
	}
	c.sendText(base64.StdEncoding.EncodeToString(data))
}

func (c *caller) sendText(text string) {
	c.t.Helper()
	if err := c.ws.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// read reads the next frame. It reads over presence that is no news: several
// processes may say the same.
func (c *caller) read() *skaldpb.RelayFrame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	kind, text, err := c.ws.Read(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(string(text))
	f := new(skaldpb.RelayFrame)
	if kind != websocket.MessageText || err != nil || proto.Unmarshal(data, f) != nil {
		c.t.Fatalf("got %.60q", text)
	}
	if e := f.GetPresenceEvent(); e != nil {
		key := string(e.GetPubkey())
		if c.presence[key] == e.GetStatus() {
			return c.read()
		}
		c.presence[key] = e.GetStatus()
	}
	return f
}

func (c *caller) message(to ed25519.PrivateKey, text string, live bool) {
	c.t.Helper()
	c.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: &skaldpb.Message{
		Ciphertext: []byte(text), Nonce: make([]byte, 12), Peer: public(to), Live: live,
	}}})
}

func (c *caller) wantMessage(from ed25519.PrivateKey, text string) {
	c.t.Helper()
	if m := c.read().GetMessage(); string(m.GetCiphertext()) != text || !bytes.Equal(m.GetPeer(), public(from)) {
		c.t.Fatalf("got %.60q, want %q", m.GetCiphertext(), text)
	}
}

func (c *caller) wantPresence(of ed25519.PrivateKey, s skaldpb.Status) {
	c.t.Helper()
	if e := c.read().GetPresenceEvent(); e.GetStatus() != s || !bytes.Equal(e.GetPubkey(), public(of)) {
		c.t.Fatalf("got %v, want %v", e, s)
	}
}

// pair makes a phone of the agent.
func (h *house) pair(agent *caller, phone ed25519.PrivateKey) {
	h.t.Helper()
	token := bytes.Repeat([]byte{7}, 32)
	agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{PairingStart: &skaldpb.PairingStart{PairingToken: token, Ttl: 60}}})
	if f := agent.read(); f.GetPairingReady().GetTtl() != 60 {
		h.t.Fatalf("got %v", f)
	}
	p := h.call(phone, &skaldpb.Auth{Role: &skaldpb.Auth_Pairing{Pairing: &skaldpb.AuthPairing{
		NamespaceId: namespaceOf(agent.key), ClientEd25519Pub: public(phone), ClientX25519Pub: make([]byte, 32),
		PairingToken: token, DeviceToken: "the-phones-token", Platform: skaldpb.Platform_PLATFORM_ANDROID,
	}}})
	_ = p.ws.Close(websocket.StatusNormalClosure, "")
	if f := agent.read(); !bytes.Equal(f.GetClientPaired().GetClientEd25519Pub(), public(phone)) {
		h.t.Fatalf("got %v", f)
	}
	agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Authorize{Authorize: &skaldpb.Authorize{Clients: [][]byte{public(phone)}}}})
	if f := agent.read(); f.GetAuthorizeOk().GetAuthorized() != 1 {
		h.t.Fatalf("got %v", f)
	}
}

// The way of a frame on AWS: connect, the challenge by job, Auth, live and stored
// messages, a phone that falls asleep, its push, and the mailbox when it is back;
// with frames by way of the ingress queue, and straight.
func TestWayOfAFrame(t *testing.T) {
	for _, direct := range []bool{false, true} {
		t.Run(map[bool]string{false: "queue", true: "direct"}[direct], func(t *testing.T) {
			h := open(t, false, direct)
			agentKey, phoneKey := newKey(t), newKey(t)
			agent := h.agent(agentKey)
			h.pair(agent, phoneKey)
			phone := h.client(phoneKey, namespaceOf(agentKey))
			agent.wantPresence(phoneKey, skaldpb.Status_STATUS_ONLINE)
			agent.message(phoneKey, "live", true)
			phone.wantMessage(agentKey, "live")
			phone.message(agentKey, "stored", false)
			agent.wantMessage(phoneKey, "stored")

			// Noise: text that is no base64, and a frame that API Gateway carries and
			// the relay does not take.
			phone.sendText(`{"hello":"there"}`)
			phone.message(agentKey, strings.Repeat("x", 65<<10), false)
			if f := phone.read(); f.GetError().GetCode() != "payload_too_large" {
				t.Fatalf("got %v", f)
			}

			_ = phone.ws.Close(websocket.StatusNormalClosure, "")
			agent.wantPresence(phoneKey, skaldpb.Status_STATUS_OFFLINE)
			agent.message(phoneKey, "for later", false)
			agent.message(phoneKey, "and this", false)
			agent.message(phoneKey, "lost", true)
			if f := agent.read(); f.GetPeerOffline() == nil {
				t.Fatalf("got %v", f)
			}
			h.wantPush("the-phones-token", []byte("for later"))
			phone = h.client(phoneKey, namespaceOf(agentKey))
			phone.wantMessage(agentKey, "for later")
			phone.wantMessage(agentKey, "and this")
			agent.wantPresence(phoneKey, skaldpb.Status_STATUS_ONLINE)

			for _, secret := range []string{"the-phones-token", "for later", base64.StdEncoding.EncodeToString([]byte("for later")), edgeSecret} {
				if bytes.Contains(h.log.Bytes(), []byte(secret)) {
					t.Errorf("%q was logged", secret)
				}
			}
			if dead := h.sqs.Dead(h.jobs); len(dead) > 0 {
				t.Errorf("dead jobs: %v", dead)
			}
		})
	}
}

// wantPush waits for a push with a message in it.
func (h *house) wantPush(token string, ciphertext []byte) {
	h.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		for _, p := range h.sns.pushes() {
			if p.token == token && p.android && bytes.Contains(p.payload, []byte(base64.StdEncoding.EncodeToString(ciphertext))) {
				return
			}
		}
		if time.Now().After(deadline) {
			h.t.Fatal("no push")
		}
	}
}

// The schedule deletes a namespace whose time is over.
func TestScheduleSweeps(t *testing.T) {
	h := open(t, false, false, "BLINDPOST_NAMESPACE_TTL=1h")
	key := newKey(t)
	agent := h.agent(key)
	_ = agent.ws.Close(websocket.StatusNormalClosure, "")
	group := "g/skald/" + hexOf(namespaceOf(key))
	h.eventually("the agent to be offline", func() bool {
		it, err := h.table.Get(t.Context(), table.Key{Partition: group, Sort: "m/" + hexOf(public(key))})
		return err == nil && it.Attrs["conn"].Str() == ""
	})
	payload, err := os.ReadFile("../../sweeper/testdata/schedule.json")
	if err != nil {
		t.Fatal(err)
	}
	sweep := h.function(wiring.Sweeper)
	for _, left := range []int{2, 0} { // member and root item
		if out, err := sweep(t.Context(), payload); err != nil || string(out) != "{}" {
			t.Fatalf("got %s, %v", out, err)
		}
		items, err := table.QueryAll(t.Context(), h.table, table.Query{Partition: group})
		if err != nil || len(items) != left {
			t.Errorf("%d items are left, %v", len(items), err)
		}
		h.ahead.Store(int64(2 * time.Hour))
	}
}

// A connection whose end was never told is found by a post, and its member is
// offline then.
func TestLostDisconnect(t *testing.T) {
	h := open(t, false, false)
	agentKey, phoneKey := newKey(t), newKey(t)
	agent := h.agent(agentKey)
	h.pair(agent, phoneKey)
	phone := h.client(phoneKey, namespaceOf(agentKey))
	agent.wantPresence(phoneKey, skaldpb.Status_STATUS_ONLINE)
	h.mute.Store(true) // the functions never hear of the end
	_ = phone.ws.Close(websocket.StatusNormalClosure, "")
	h.eventually("API Gateway to know", func() bool { return h.muted.Load() > 0 })
	agent.message(phoneKey, "are you there", false)
	agent.wantPresence(phoneKey, skaldpb.Status_STATUS_OFFLINE)
	h.wantPush("the-phones-token", []byte("are you there"))
}

func (h *house) eventually(what string, ok func() bool) {
	h.t.Helper()
	suite.Eventually(h.t, 20*time.Second, what, ok)
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }
