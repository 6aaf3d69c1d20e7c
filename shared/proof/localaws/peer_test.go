//go:build aws

package localaws_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/dialect/skald/skaldpb"
)

// patience is how long anything may take.
const patience = 90 * time.Second

// household is an agent and a phone that it has authorised.
type household struct {
	t     *testing.T
	f     *front
	agent *skaldclient.Identity
	phone *skaldclient.Identity
}

// member is one connection of one of them.
type member struct {
	t *testing.T
	*skaldclient.Conn
}

func (f *front) dial(auth skaldclient.AuthFunc) (*member, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := skaldclient.Dial(ctx, f.url(), skaldclient.DialOptions{TLSConfig: f.tls()})
	if err != nil {
		return nil, err
	}
	if _, err := c.Authenticate(ctx, auth); err != nil {
		c.Abort()
		return nil, err
	}
	f.t.Cleanup(c.Abort)
	return &member{f.t, c}, nil
}

func (f *front) mustDial(auth skaldclient.AuthFunc) *member {
	f.t.Helper()
	m, err := f.dial(auth)
	if err != nil {
		f.t.Fatalf("failed to connect: %v", err)
	}
	return m
}

// household pairs an agent and a phone. The agent stays connected.
func (f *front) household() (*household, *member) {
	f.t.Helper()
	h := &household{t: f.t, f: f}
	for _, id := range []**skaldclient.Identity{&h.agent, &h.phone} {
		var err error
		if *id, err = skaldclient.GenerateIdentity(rand.Reader); err != nil {
			f.t.Fatal(err)
		}
	}
	agent := f.mustDial(skaldclient.AgentAuth(h.agent))
	var token skaldclient.PairingToken
	_, _ = rand.Read(token[:]) // never fails
	agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{
		PairingStart: &skaldpb.PairingStart{PairingToken: token[:], Ttl: 300}}})
	agent.await("PairingReady", func(f *skaldpb.RelayFrame) bool { return f.GetPairingReady() != nil })
	f.mustDial(skaldclient.PairingAuth(h.phone, h.agent.Namespace(), token, "device-token-of-the-phone", skaldclient.PlatformAndroid)).Close()
	agent.await("ClientPaired", func(f *skaldpb.RelayFrame) bool { return f.GetClientPaired() != nil })
	key := h.phone.PublicKey()
	agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Authorize{Authorize: &skaldpb.Authorize{Clients: [][]byte{key[:]}}}})
	agent.await("AuthorizeOk", func(f *skaldpb.RelayFrame) bool { return f.GetAuthorizeOk() != nil })
	return h, agent
}

func (h *household) dialAgent() *member { return h.f.mustDial(skaldclient.AgentAuth(h.agent)) }

func (h *household) phoneAuth() skaldclient.AuthFunc {
	return skaldclient.ClientAuth(h.phone, h.agent.Namespace(), "device-token-of-the-phone", skaldclient.PlatformAndroid)
}

func (h *household) dialPhone() *member { return h.f.mustDial(h.phoneAuth()) }

func (m *member) trySend(f *skaldpb.RelayFrame) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return m.Send(ctx, f)
}

func (m *member) send(f *skaldpb.RelayFrame) {
	m.t.Helper()
	if err := m.trySend(f); err != nil {
		m.t.Fatalf("failed to send: %v", err)
	}
}

func (m *member) receive() (*skaldpb.RelayFrame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return m.Receive(ctx)
}

// await reads on until a frame has come.
func (m *member) await(what string, is func(*skaldpb.RelayFrame) bool) *skaldpb.RelayFrame {
	m.t.Helper()
	for {
		f, err := m.receive()
		if err != nil {
			m.t.Fatalf("failed to wait for %s: %v", what, err)
		}
		if is(f) {
			return f
		}
		if e := f.GetError(); e != nil {
			m.t.Fatalf("got the error %s while waiting for %s", e.GetCode(), what)
		}
	}
}

// barrier waits until the relay has handled all that was sent.
func (m *member) barrier() {
	m.t.Helper()
	m.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}})
	m.await("PresenceList", func(f *skaldpb.RelayFrame) bool { return f.GetPresenceList() != nil })
}

// letter is the message with a number.
func letter(to skaldclient.PublicKey, n int) *skaldpb.RelayFrame {
	s := skaldclient.Sealed{Ciphertext: fmt.Appendf(nil, "letter %d of a test that is not secret, padded as if it were", n)}
	_, _ = rand.Read(s.Nonce[:]) // never fails
	return skaldclient.MessageFrame(to, s, false)
}

func (h *household) letter(n int) *skaldpb.RelayFrame { return letter(h.phone.PublicKey(), n) }

// number is that of a letter.
func number(f *skaldpb.RelayFrame) (int, bool) {
	text, ok := strings.CutPrefix(string(f.GetMessage().GetCiphertext()), "letter ")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(strings.Fields(text)[0])
	return n, err == nil
}

// wantLetters reads the letters from first to last, in order, each once unless repeats.
func (m *member) wantLetters(first, last int, repeats bool) {
	m.t.Helper()
	for next := first; next <= last; {
		f, err := m.receive()
		if err != nil {
			m.t.Fatalf("failed to wait for letter %d: %v", next, err)
		}
		n, ok := number(f)
		switch {
		case !ok:
		case n == next:
			next++
		case n < next && repeats:
		default:
			m.t.Fatalf("got letter %d, want %d", n, next)
		}
	}
}

// wantClosed reads on until the connection ends.
func (m *member) wantClosed() {
	m.t.Helper()
	for {
		if _, err := m.receive(); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				m.t.Fatal("the connection was not closed")
			}
			return
		}
	}
}
