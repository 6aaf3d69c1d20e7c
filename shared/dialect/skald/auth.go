package skald

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// maxTries bounds how often admission is decided again because the member has
// changed meanwhile.
const maxTries = 16

// auth checks an Auth and admits the peer in its role. It reports whether the
// peer is admitted as a member.
func (d *Dialect) auth(ctx context.Context, c *relay.Conn, a *skaldpb.Auth) (bool, error) {
	var role string
	var pub []byte
	switch r := a.GetRole().(type) {
	case *skaldpb.Auth_Agent:
		role, pub = roleAgent, r.Agent.GetAgentEd25519Pub()
	case *skaldpb.Auth_Client:
		role, pub = roleClient, r.Client.GetClientEd25519Pub()
	case *skaldpb.Auth_Pairing:
		role, pub = rolePairing, r.Pairing.GetClientEd25519Pub()
	default:
		return false, d.refuse(ctx, c, "", codeBadRequest, "Auth has no role")
	}
	if len(pub) != keySize {
		return false, d.refuse(ctx, c, role, codeBadRequest, "a public key has 32 bytes")
	}
	if len(a.GetSignature()) != signatureSize {
		return false, d.refuse(ctx, c, role, codeBadRequest, "a signature has 64 bytes")
	}
	// The signature comes before any other logic.
	if !verifyChallenge(pub, c.Private, a.GetSignature()) {
		return false, d.refuse(ctx, c, role, codeInvalidSignature, "the signature of the challenge is not valid")
	}
	switch role {
	case roleAgent:
		return d.authAgent(ctx, c, pub)
	case roleClient:
		return d.authClient(ctx, c, a.GetClient())
	default:
		return false, d.authPairing(ctx, c, a.GetPairing())
	}
}

// authAgent admits the owner of a namespace, which is created here if it does
// not exist (section 4.1).
func (d *Dialect) authAgent(ctx context.Context, c *relay.Conn, pub []byte) (bool, error) {
	namespace := namespaceID(pub)
	group, key := groupOf(namespace), hex.EncodeToString(pub)
	release, err := d.core.Hold(ctx, group, key)
	if err != nil {
		return false, err
	}
	defer release()
	for range maxTries {
		root, err := d.core.Root(ctx, group)
		if err != nil {
			return false, err
		}
		if root != nil {
			if root, err = d.dropExpired(ctx, root); err != nil {
				return false, err
			}
		}
		if root == nil {
			root, err = d.createNamespace(ctx, group, key)
			if errors.Is(err, table.ErrCondition) {
				continue
			}
			if err != nil {
				return false, err
			}
		}
		if root.Key != key {
			return false, d.refuse(ctx, c, roleAgent, codeNotFound, "the namespace belongs to another key")
		}
		joined, err := d.core.Join(ctx, c, relay.Joining{Member: root})
		if errors.Is(err, table.ErrCondition) {
			continue
		}
		if errors.Is(err, relay.ErrReplaced) {
			return false, d.close(ctx, c, gateway.CloseReplaced, "replaced by a newer connection")
		}
		if err != nil {
			return false, err
		}
		return true, d.welcome(ctx, c, namespace, root, joined)
	}
	return false, fmt.Errorf("failed to admit an agent: %w", table.ErrBusy)
}

// dropExpired deletes a namespace whose time is over, whether or not the sweeper
// has been there. It returns the root that is in force, nil if there is none.
func (d *Dialect) dropExpired(ctx context.Context, root *relay.Member) (*relay.Member, error) {
	expired, _, err := d.core.Expired(ctx, root, d.lim().NamespaceTTL)
	if err != nil || !expired {
		return root, err
	}
	if _, err := d.core.DeleteGroup(ctx, root); err != nil {
		return nil, err
	}
	return d.core.Root(ctx, root.Group)
}

func (d *Dialect) createNamespace(ctx context.Context, group, key string) (*relay.Member, error) {
	// The deletion of an earlier namespace of this key may have been interrupted.
	if err := d.core.CleanGroup(ctx, group); err != nil {
		return nil, err
	}
	generation := d.core.NewID()
	err := d.core.Table().Transact(ctx, []table.Op{
		d.core.CreateOp(group, key, relay.NewMember{Generation: generation, Role: roleAgent}, table.IfAbsent()),
		relay.RootOp(group, generation, key),
		relay.DueOp(d.core.Now().Add(max(d.lim().NamespaceTTL, time.Minute)), group),
	})
	if err != nil {
		return nil, fmt.Errorf("failed to create a namespace: %w", err)
	}
	d.core.Log().InfoContext(ctx, "namespace created", "namespace", relay.ShortGroup(group))
	m, err := d.core.GetMember(ctx, group, key)
	if err == nil && m == nil {
		return nil, table.ErrCondition
	}
	return m, err
}

// authClient admits an authorised client (section 4.3).
func (d *Dialect) authClient(ctx context.Context, c *relay.Conn, a *skaldpb.AuthClient) (bool, error) {
	if len(a.GetNamespaceId()) != keySize {
		return false, d.refuse(ctx, c, roleClient, codeBadRequest, "a namespace id has 32 bytes")
	}
	if !validDevice(a.GetDeviceToken(), a.GetPlatform()) {
		return false, d.refuse(ctx, c, roleClient, codeBadRequest, "platform or device token is not valid")
	}
	group, key := groupOf(a.GetNamespaceId()), hex.EncodeToString(a.GetClientEd25519Pub())
	root, err := d.namespace(ctx, group)
	if err != nil {
		return false, err
	}
	if root == nil {
		return false, d.refuse(ctx, c, roleClient, codeNotFound, "there is no such namespace")
	}
	release, err := d.core.Hold(ctx, group, key)
	if err != nil {
		return false, err
	}
	defer release()
	token, platform := a.GetDeviceToken(), int64(a.GetPlatform())
	for range maxTries {
		m, err := d.core.GetMember(ctx, group, key)
		if err != nil {
			return false, err
		}
		if m == nil || m.Generation != root.Generation || m.State != stateAuthorised {
			return false, d.refuse(ctx, c, roleClient, codeUnauthorized, "the client is not authorised")
		}
		joined, err := d.core.Join(ctx, c, relay.Joining{
			Member: m,
			Conds:  []table.Cond{relay.IfState(stateAuthorised)},
			Change: relay.MemberChange{Token: &token, Platform: &platform},
		})
		if errors.Is(err, table.ErrCondition) {
			continue
		}
		if errors.Is(err, relay.ErrReplaced) {
			return false, d.close(ctx, c, gateway.CloseReplaced, "replaced by a newer connection")
		}
		if err != nil {
			return false, err
		}
		return true, d.welcome(ctx, c, a.GetNamespaceId(), m, joined)
	}
	return false, fmt.Errorf("failed to admit a client: %w", table.ErrBusy)
}

// namespace reads the agent's member of a namespace, nil if there is none or it has
// expired.
func (d *Dialect) namespace(ctx context.Context, group string) (*relay.Member, error) {
	root, err := d.core.Root(ctx, group)
	if err != nil || root == nil {
		return nil, err
	}
	expired, _, err := d.core.Expired(ctx, root, d.lim().NamespaceTTL)
	if err != nil || expired {
		return nil, err
	}
	return root, nil
}

// welcome posts what comes first on an admitted connection, in this order: AuthOk, to
// the agent the clients that are still pending, then the mailbox; then it opens the
// connection to new traffic. The challenge is forgotten last: an Auth that is delivered
// again after a crash before that is handled again, a later one is ignored.
func (d *Dialect) welcome(ctx context.Context, c *relay.Conn, namespace []byte, self *relay.Member, joined relay.Joined) error {
	d.core.Observer().Authenticated(d.Name(), c.Role, "ok")
	if err := d.reply(ctx, c, authOk(namespace)); err != nil {
		return err
	}
	if c.Role == roleAgent {
		if err := d.resendPaired(ctx, c, self.Generation); err != nil {
			return err
		}
	}
	if joined.First {
		if err := d.core.Announce(ctx, c.Group, c.Member); err != nil {
			return err
		}
	}
	if err := d.core.Open(ctx, c); err != nil {
		return err
	}
	c.Private, c.Admitted = nil, true
	c.Done()
	return d.core.SaveConn(ctx, c)
}

func authOk(namespace []byte) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthOk{
		AuthOk: &skaldpb.AuthOk{NamespaceId: namespace},
	}}
}

func validDevice(token string, p skaldpb.Platform) bool {
	return len(token) <= maxDeviceToken &&
		(p == skaldpb.Platform_PLATFORM_IOS || p == skaldpb.Platform_PLATFORM_ANDROID)
}
