package skald

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
)

var noClient = &http.Client{}

// scripted serves each connection with a function.
func scripted(t *testing.T, serve func(ctx context.Context, ws *websocket.Conn)) (string, DialOptions) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ws, err := websocket.Accept(w, req, nil)
		if err != nil {
			return
		}
		ws.SetReadLimit(1 << 20)
		defer ws.CloseNow()
		serve(context.Background(), ws)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return "ws://relay.test", DialOptions{DialContext: l.dial}
}

func mustFrame(t *testing.T, f *skaldpb.RelayFrame) []byte {
	t.Helper()
	b, err := proto.Marshal(f)
	if err != nil {
		t.Error(err)
	}
	return b
}

func mustDial(t *testing.T, url string, o DialOptions) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Abort)
	return c
}

var offline = &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PeerOffline{
	PeerOffline: &skaldpb.PeerOffline{Peer: []byte("somebody")}}}

func TestConnAgainstARelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		id := mustIdentity(t, 1)
		c := mustDial(t, r.url, r.dial)
		ns, err := c.Authenticate(t.Context(), AgentAuth(id))
		if err != nil || ns != id.Namespace() {
			t.Fatalf("%v, %v", ns, err)
		}
		stranger := mustDial(t, r.url, r.dial)
		_, err = stranger.Authenticate(t.Context(), ClientAuth(mustIdentity(t, 2), ns, "", PlatformIOS))
		var refused *RelayError
		if !errors.As(err, &refused) || refused.Code != CodeUnauthorized || !refused.Auth {
			t.Errorf("%v", err)
		}
		<-stranger.Done()
		var closed *CloseError
		if !errors.As(stranger.Err(), &closed) || closed.Code != gateway.ClosePolicy {
			t.Errorf("ended with %v", stranger.Err())
		}
		c.Close()
		if _, err := c.Receive(t.Context()); !errors.Is(err, errClosed) {
			t.Errorf("received after Close: %v", err)
		}
		if err := c.Send(t.Context(), offline); err == nil {
			t.Error("sent after Close")
		}
	})
}

// Pings are answered without a call of Receive, and an end of ctx loses no frame.
func TestConnReadsAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, o := scripted(t, func(ctx context.Context, ws *websocket.Conn) {
			ctx = ws.CloseRead(ctx)
			for range 10 {
				if err := ws.Ping(ctx); err != nil {
					t.Error(err)
				}
				time.Sleep(30 * time.Second)
			}
			for range 3 {
				if err := ws.Write(ctx, websocket.MessageBinary, mustFrame(t, offline)); err != nil {
					t.Error(err)
				}
			}
			_ = ws.Write(ctx, websocket.MessageBinary, []byte{0xff})
			_ = ws.Write(ctx, websocket.MessageText, []byte("hello"))
			_ = ws.Write(ctx, websocket.MessageBinary, mustFrame(t, offline))
			ws.Close(4008, "too slow")
		})
		c := mustDial(t, url, o)
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := c.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			cancel()
		}
		<-c.Done()
		for i := range 6 {
			f, err := c.Receive(t.Context())
			if bad := i == 3 || i == 4; bad != errors.Is(err, ErrProtocol) || !bad && !proto.Equal(f, offline) {
				t.Errorf("%d: %v, %v", i, f, err)
			}
		}
		var closed *CloseError
		if _, err := c.Receive(t.Context()); !errors.As(err, &closed) || closed.Code != gateway.CloseSlowReader || closed.Reason != "too slow" {
			t.Errorf("%v", err)
		}
	})
}

// What waits is bounded. Then the relay feels it, and nothing is lost.
func TestConnInboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{
			Message: &skaldpb.Message{Ciphertext: make([]byte, MaxLiveCiphertext)}}}
		const frames = 40
		written := 0
		url, o := scripted(t, func(ctx context.Context, ws *websocket.Conn) {
			for range frames {
				if err := ws.Write(ctx, websocket.MessageBinary, mustFrame(t, big)); err != nil {
					t.Error(err)
				}
				written++
			}
			ws.Close(websocket.StatusNormalClosure, "")
		})
		c := mustDial(t, url, o)
		synctest.Wait()
		if most := connInbox/MaxLiveCiphertext + 2; written > most {
			t.Errorf("%d frames were taken, at most %d wanted", written, most)
		}
		for i := range frames {
			if _, err := c.Receive(t.Context()); err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
		}
	})
}

// A front that cannot carry binary messages speaks base64 text, and the client
// answers alike: in frames of at most 32 KB, in messages of at most 128 KB.
func TestBase64Text(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := mustIdentity(t, 1)
		ns := id.Namespace()
		big := MessageFrame(PublicKey{1}, Sealed{Ciphertext: make([]byte, 90_000)}, true)
		url, o := scripted(t, func(ctx context.Context, ws *websocket.Conn) {
			say := func(f *skaldpb.RelayFrame) {
				text := base64.StdEncoding.EncodeToString(mustFrame(t, f))
				if err := ws.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
					t.Error(err)
				}
			}
			hear := func() *skaldpb.RelayFrame {
				kind, b, err := ws.Read(ctx)
				if err != nil || kind != websocket.MessageText {
					t.Errorf("%v: %v", kind, err)
				}
				raw, err := base64.StdEncoding.DecodeString(string(b))
				f := &skaldpb.RelayFrame{}
				if err != nil || proto.Unmarshal(raw, f) != nil {
					t.Errorf("no frame as base64: %v", err)
				}
				return f
			}
			nonce := bytes.Repeat([]byte{7}, 32)
			say(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Challenge{Challenge: &skaldpb.Challenge{Nonce: nonce}}})
			auth := hear().GetAuth()
			if !ed25519.Verify(auth.GetAgent().GetAgentEd25519Pub(), challengeText(nonce), auth.GetSignature()) {
				t.Error("signature is not valid")
			}
			say(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthOk{AuthOk: &skaldpb.AuthOk{NamespaceId: ns[:]}}})
			// As a failing integration of API Gateway does.
			_ = ws.Write(ctx, websocket.MessageText, []byte(`{"message": "Internal server error"}`))
			if f := hear(); !proto.Equal(f, big) {
				t.Errorf("came as %d bytes", proto.Size(f))
			}
			say(offline)
			_, _, _ = ws.Read(ctx)
		})
		counted := &countedDial{DialOptions: o}
		c := mustDial(t, url, counted.options())
		if _, err := c.Authenticate(t.Context(), AgentAuth(id)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Receive(t.Context()); !errors.Is(err, ErrProtocol) {
			t.Errorf("%v", err)
		}
		if err := c.Send(t.Context(), big); err != nil {
			t.Fatal(err)
		}
		if f, err := c.Receive(t.Context()); err != nil || !proto.Equal(f, offline) {
			t.Errorf("%v, %v", f, err)
		}
		for _, n := range counted.frames(t) {
			if n > 32<<10 {
				t.Errorf("sent a WebSocket frame of %d bytes", n)
			}
		}
		if len(counted.frames(t)) < 5 {
			t.Errorf("frames of %v bytes", counted.frames(t))
		}
		if err := c.SendBytes(t.Context(), make([]byte, 100_000)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("sent more than a message may hold: %v", err)
		}
		if c.Err() != nil {
			t.Errorf("which ended the connection: %v", c.Err())
		}
	})
}

func TestHandshakeIsStrict(t *testing.T) {
	challenge := func(n int) *skaldpb.RelayFrame {
		return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Challenge{Challenge: &skaldpb.Challenge{Nonce: make([]byte, n)}}}
	}
	authOk := func(n int) *skaldpb.RelayFrame {
		return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthOk{AuthOk: &skaldpb.AuthOk{NamespaceId: make([]byte, n)}}}
	}
	for _, c := range []struct {
		name   string
		script []*skaldpb.RelayFrame
		want   func(error) bool
	}{
		{"admitted unasked", []*skaldpb.RelayFrame{authOk(32)}, isProtocol},
		{"short nonce", []*skaldpb.RelayFrame{challenge(16)}, isProtocol},
		{"long nonce", []*skaldpb.RelayFrame{challenge(64)}, isProtocol},
		{"refused before the challenge", []*skaldpb.RelayFrame{errorFrame(CodeRateLimited)}, func(err error) bool { return IsCode(err, CodeRateLimited) }},
		{"challenged twice", []*skaldpb.RelayFrame{challenge(32), challenge(32)}, isProtocol},
		{"short namespace", []*skaldpb.RelayFrame{challenge(32), authOk(31)}, isProtocol},
		{"Error for AuthError", []*skaldpb.RelayFrame{challenge(32), errorFrame(CodeBadRequest)}, func(err error) bool { return refusedWith(err) == CodeBadRequest }},
		{"another namespace", []*skaldpb.RelayFrame{challenge(32), authOk(32)}, isProtocol},
		{"silence", nil, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		{"silence after the challenge", []*skaldpb.RelayFrame{challenge(32)}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				url, o := scripted(t, func(ctx context.Context, ws *websocket.Conn) {
					go func() {
						for _, f := range c.script {
							_ = ws.Write(ctx, websocket.MessageBinary, mustFrame(t, f))
						}
					}()
					for {
						if _, _, err := ws.Read(ctx); err != nil {
							return
						}
					}
				})
				rec := newRecorder(t)
				a, err := NewAgent(AgentConfig{URL: url, Config: Config{
					Store: &MemoryStore{}, Dial: o, OnEvent: ToChannel(rec.events)}})
				if err != nil {
					t.Fatal(err)
				}
				rec.start(a.Run)
				if got := next[Disconnected](t, rec); !c.want(got.Err) || got.WasConnected {
					t.Errorf("%+v", got)
				}
				rec.stop()
			})
		})
	}
}

func isProtocol(err error) bool { return errors.Is(err, ErrProtocol) }

// The same over TCP and TLS, with a certificate that only TLSConfig knows.
func TestOverTLS(t *testing.T) {
	r := newPipeRelay(t)
	s := httptest.NewUnstartedServer(r)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	r.url = strings.Replace(s.URL, "https:", "wss:", 1)
	r.dial = DialOptions{TLSConfig: &tls.Config{RootCAs: pool}}
	agent, client := r.pair(t, func(c *AgentConfig) { c.Rand = rand.Reader }, func(c *ClientConfig) { c.Rand = rand.Reader })
	if err := client.Send(t.Context(), note(t, "over TLS"), false); err != nil {
		t.Fatal(err)
	}
	if got := next[Message](t, agent.recorder); textOf(got.Payload) != "over TLS" {
		t.Errorf("%+v", got)
	}
	if err := client.stop(); err != nil {
		t.Error(err)
	}
	if err := agent.stop(); err != nil {
		t.Error(err)
	}
	if _, err := Dial(t.Context(), r.url, DialOptions{}); err == nil {
		t.Error("an unknown certificate was taken")
	}
	if _, err := Dial(t.Context(), r.url+"/elsewhere", r.dial); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v", err)
	}
}
