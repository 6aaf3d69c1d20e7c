package chaos

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/proof/suite"
)

// member is an agent or a phone.
type member struct {
	*skaldclient.Identity
	id     uint32 // names it in letters
	name   string
	ns     skaldclient.NamespaceID
	agent  bool
	device string // push token
}

// Format prints the name, whatever the verb; the identity would print its key.
func (m *member) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, m.name) }

// home is an agent and its phones.
type home struct {
	agent  *member
	phones []*member
}

// people makes members and knows them by their keys.
type people struct {
	secrets *suite.Secrets
	last    atomic.Uint32
}

func (p *people) member(what string) *member {
	id, err := skaldclient.GenerateIdentity(rand.Reader)
	if err != nil {
		panic(fmt.Sprintf("chaos: %v", err)) // crypto/rand does not fail
	}
	m := &member{Identity: id, id: p.last.Add(1)}
	m.name = fmt.Sprintf("%s %d", what, m.id)
	key, exchange, seed := id.PublicKey(), id.ExchangeKey(), id.Seed()
	p.secrets.Add("the Ed25519 key of "+m.name, key[:])
	p.secrets.Add("the X25519 key of "+m.name, exchange[:])
	p.secrets.Add("the seed of "+m.name, seed[:])
	return m
}

// newAgent makes an agent. The relay does not know it yet.
func (p *people) newAgent() *member {
	m := p.member("agent")
	m.agent = true
	m.ns = m.Namespace()
	p.secrets.Add("the namespace of "+m.name, m.ns[:])
	return m
}

// newPhone makes a phone that may become a client of an agent.
func (p *people) newPhone(agent *member) *member {
	m := p.member("phone")
	m.ns = agent.ns
	var token [32]byte
	_, _ = rand.Read(token[:])
	m.device = hex.EncodeToString(token[:])
	p.secrets.Add("the device token of "+m.name, []byte(m.device))
	return m
}

// newToken makes a pairing token.
func (p *people) newToken() (token skaldclient.PairingToken) {
	_, _ = rand.Read(token[:])
	p.secrets.Add("a pairing token", token[:])
	return token
}

// auth is how a member says who it is.
func (m *member) auth() skaldclient.AuthFunc {
	if m.agent {
		return skaldclient.AgentAuth(m.Identity)
	}
	return skaldclient.ClientAuth(m.Identity, m.ns, m.device, skaldclient.PlatformIOS)
}

// introduce is how a phone asks to be paired.
func (m *member) introduce(token skaldclient.PairingToken) skaldclient.AuthFunc {
	return skaldclient.PairingAuth(m.Identity, m.ns, token, m.device, skaldclient.PlatformIOS)
}

// ownAddress gives each member a loopback address of its own, so that limits per
// address hold as they do for clients all over the world. Only Linux has all of
// 127.0.0.0/8 by itself; elsewhere the limit has to be lifted.
func ownAddress(m *member) way {
	if runtime.GOOS != "linux" {
		return way{}
	}
	return way{from: net.IPv4(127, byte(1+m.id>>16), byte(m.id>>8), byte(m.id))}
}
