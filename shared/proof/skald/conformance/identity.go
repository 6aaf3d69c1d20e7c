package conformance

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"blindpost/shared/dialect/skald/skaldpb"
)

// Domain strings of the protocol's cryptography.
const (
	authDomain = "skald-relay-auth-v1"
	nsDomain   = "skald-namespace-v1"
)

// identity is the key of an agent or a client and what goes with it.
type identity struct {
	name     string
	key      []byte // Ed25519 public key, 32 bytes
	private  ed25519.PrivateKey
	exchange []byte // X25519 public key; opaque to the relay
	token    string // push token
	platform skaldpb.Platform
}

func newIdentity(r *relay, name string) *identity {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	id := &identity{
		name:     name,
		key:      public,
		private:  private,
		exchange: randomBytes(32),
		token:    "device-" + hex.EncodeToString(randomBytes(16)),
		platform: skaldpb.Platform_PLATFORM_IOS,
	}
	r.secrets.Add(name+"'s Ed25519 key", id.key)
	r.secrets.Add(name+"'s X25519 key", id.exchange)
	r.secrets.Add(name+"'s device token", []byte(id.token))
	return id
}

func (id *identity) String() string { return id.name }

// namespace is the id of the namespace whose agent this is.
func (id *identity) namespace() []byte {
	sum := sha256.Sum256(join(nsDomain, id.key))
	return sum[:]
}

// sign answers a challenge.
func (id *identity) sign(nonce []byte) []byte {
	return ed25519.Sign(id.private, join(authDomain, nonce))
}

// challengeText is what a peer signs.
func challengeText(nonce []byte) []byte { return join(authDomain, nonce) }

// join is domain, one zero byte, data.
func join(domain string, data []byte) []byte {
	return bytes.Join([][]byte{[]byte(domain), data}, []byte{0})
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// authAgent is the Auth of an agent, without a signature.
func (id *identity) authAgent() *skaldpb.Auth {
	return &skaldpb.Auth{Role: &skaldpb.Auth_Agent{Agent: &skaldpb.AuthAgent{AgentEd25519Pub: id.key}}}
}

// authClient is the Auth of an authorised client, without a signature.
func (id *identity) authClient(namespace []byte) *skaldpb.Auth {
	return &skaldpb.Auth{Role: &skaldpb.Auth_Client{Client: &skaldpb.AuthClient{
		NamespaceId:      namespace,
		ClientEd25519Pub: id.key,
		DeviceToken:      id.token,
		Platform:         id.platform,
	}}}
}

// authPairing is the Auth of a client to be paired, without a signature.
func (id *identity) authPairing(namespace, token []byte) *skaldpb.Auth {
	return &skaldpb.Auth{Role: &skaldpb.Auth_Pairing{Pairing: &skaldpb.AuthPairing{
		NamespaceId:      namespace,
		ClientEd25519Pub: id.key,
		ClientX25519Pub:  id.exchange,
		PairingToken:     token,
		DeviceToken:      id.token,
		Platform:         id.platform,
	}}}
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }
