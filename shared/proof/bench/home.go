package bench

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/dialect/skald/skaldpb"
)

// home is an agent with one client, paired with it over the relay. Each has a
// namespace and keys that nobody else has.
type home struct {
	agent, client *skaldclient.Identity
	deviceToken   string
	agentConn     *conn
}

// pairUp makes a home: the agent connects and stays, the client has been
// authorised and is offline.
func (f *fleet) pairUp() (*home, error) {
	h := &home{}
	var err error
	if h.agent, err = skaldclient.GenerateIdentity(rand.Reader); err != nil {
		return nil, err
	}
	if h.client, err = skaldclient.GenerateIdentity(rand.Reader); err != nil {
		return nil, err
	}
	var token skaldclient.PairingToken
	var device [32]byte
	for _, b := range [][]byte{token[:], device[:]} {
		if _, err := rand.Read(b); err != nil {
			return nil, fmt.Errorf("failed to draw a token: %w", err)
		}
	}
	h.deviceToken = hex.EncodeToString(device[:]) // a phone that can be woken, as phones can
	if h.agentConn, err = f.enter(skaldclient.AgentAuth(h.agent)); err != nil {
		return nil, err
	}
	h.agentConn.within(callTime)
	if err := f.authorise(h, token); err != nil {
		return nil, f.because(fmt.Errorf("failed to pair: %w", err))
	}
	h.agentConn.within(0)
	return h, nil
}

func (f *fleet) authorise(h *home, token skaldclient.PairingToken) error {
	a := h.agentConn
	err := a.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{
		PairingStart: &skaldpb.PairingStart{PairingToken: token[:], Ttl: 60},
	}})
	if err != nil {
		return err
	}
	if _, err := a.await("PairingReady", func(f *skaldpb.RelayFrame) bool { return f.GetPairingReady() != nil }); err != nil {
		return err
	}
	c, err := f.enter(skaldclient.PairingAuth(h.client, h.agent.Namespace(), token, h.deviceToken, skaldclient.PlatformIOS))
	if err != nil {
		return err
	}
	f.leave(c)
	if _, err := a.await("ClientPaired", func(f *skaldpb.RelayFrame) bool { return f.GetClientPaired() != nil }); err != nil {
		return err
	}
	key := h.client.PublicKey()
	err = a.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Authorize{
		Authorize: &skaldpb.Authorize{Clients: [][]byte{key[:]}},
	}})
	if err != nil {
		return err
	}
	ok, err := a.await("AuthorizeOk", func(f *skaldpb.RelayFrame) bool { return f.GetAuthorizeOk() != nil })
	if err != nil {
		return err
	}
	if n := ok.GetAuthorizeOk().GetAuthorized(); n != 1 {
		return fmt.Errorf("relay has authorised %d clients instead of 1", n)
	}
	return nil
}

// enterClient connects the client.
func (f *fleet) enterClient(h *home) (*conn, error) {
	return f.enter(skaldclient.ClientAuth(h.client, h.agent.Namespace(), h.deviceToken, skaldclient.PlatformIOS))
}

// pairUpAll makes n homes.
func (f *fleet) pairUpAll(n int) ([]*home, error) {
	homes := make([]*home, n)
	err := f.each(n, openers, func(i int) (err error) {
		homes[i], err = f.pairUp()
		return err
	})
	return homes, err
}
