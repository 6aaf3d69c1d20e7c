package skald

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

// inOrder runs f while it holds writeSlot.
func (m *member) inOrder(ctx context.Context, f func() error) error {
	select {
	case m.writeSlot <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("failed to wait for an earlier frame: %w", context.Cause(ctx))
	}
	defer func() { <-m.writeSlot }()
	return f()
}

// NewPayload makes a payload, see the function [NewPayload].
func (m *member) NewPayload(kind Kind, body any) (Payload, error) {
	return NewPayload(m.rand, time.Now(), kind, body)
}

// send seals a payload for an authorised peer and writes it.
func (m *member) send(ctx context.Context, to PublicKey, p Payload, live bool) error {
	if p.ID == "" {
		id, err := NewUUID(m.rand)
		if err != nil {
			return err
		}
		p.ID = id
	}
	if p.TS == 0 {
		p.TS = time.Now().UnixMilli()
	}
	doc, err := p.Marshal()
	if err != nil {
		return err
	}
	framed, err := Frame(doc)
	if err != nil {
		return err
	}
	if err := checkSize(len(framed)+TagSize, live); err != nil {
		return err
	}
	session, err := m.session(to)
	if err != nil {
		return err
	}
	return m.inOrder(ctx, func() error {
		l := m.current()
		if l == nil {
			return ErrNotConnected
		}
		counter, err := m.ledger.nextSend(to)
		if err != nil {
			return err
		}
		sealed, err := session.sealFramed(counter, framed)
		if err != nil {
			return err
		}
		return l.writeMessage(to, sealed, live)
	})
}

// SendSealed writes a message that was sealed elsewhere, to any member of the
// namespace.
func (m *member) SendSealed(ctx context.Context, to PublicKey, s Sealed, live bool) error {
	if err := checkSize(len(s.Ciphertext), live); err != nil {
		return err
	}
	return m.inOrder(ctx, func() error {
		l := m.current()
		if l == nil {
			return ErrNotConnected
		}
		return l.writeMessage(to, s, live)
	})
}

func checkSize(ciphertext int, live bool) error {
	limit := MaxStoredCiphertext
	if live {
		limit = MaxLiveCiphertext
	}
	if ciphertext > limit {
		return fmt.Errorf("failed to send: %w: %d bytes of ciphertext, at most %d", ErrTooLarge, ciphertext, limit)
	}
	return nil
}

// session returns the session with an authorised peer.
func (m *member) session(key PublicKey) (*Session, error) {
	peer, ok := m.ledger.peer(key)
	if !ok || peer.Status != StatusAuthorized {
		return nil, fmt.Errorf("%w: %v", ErrUnknownPeer, key)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sessions[key]; s != nil {
		return s, nil
	}
	s, err := NewSession(m.id, m.own, peer.Key, peer.Exchange)
	if err != nil {
		return nil, err
	}
	m.sessions[key] = s
	return s, nil
}

// receive opens a message and delivers it. It returns an error only if the counter cannot
// be stored: then the connection must end, so that the relay keeps the message.
func (m *member) receive(l *link, msg *skaldpb.Message) error {
	from, err := ParsePublicKey(msg.GetPeer())
	if err != nil {
		return l.protocolFault(err)
	}
	drop := func(err error) error {
		l.q.push(Dropped{From: from, Err: err}, 0)
		return nil
	}
	if _, known := m.ledger.peer(from); !known {
		l.q.push(SealedMessage{
			From:       from,
			Nonce:      msg.GetNonce(),
			Ciphertext: msg.GetCiphertext(),
			Live:       msg.GetLive(),
		}, len(msg.GetCiphertext()))
		return nil
	}
	session, err := m.session(from)
	if err != nil {
		return drop(err)
	}
	counter, plaintext, err := session.Open(msg.GetNonce(), msg.GetCiphertext())
	if errors.Is(err, ErrOpen) {
		return drop(err)
	}
	// The peer has sealed it, so its counter is used, even if its content is invalid.
	switch counted := m.ledger.accept(from, counter); {
	case errors.Is(counted, ErrReplay):
		return drop(counted)
	case counted != nil:
		return counted
	}
	if err != nil {
		return drop(err)
	}
	payload, err := ParsePayload(plaintext)
	if err != nil {
		return drop(err)
	}
	l.q.push(Message{
		From:    from,
		Payload: payload,
		Live:    msg.GetLive(),
		Counter: counter,
	}, len(plaintext))
	return nil
}

// Presence asks the relay which members are connected, including this one. In the
// protocol clients ask; a relay may refuse an agent.
func (m *member) Presence(ctx context.Context) ([]PublicKey, error) {
	l := m.current()
	if l == nil {
		return nil, ErrNotConnected
	}
	f, err := l.ask(ctx, &skaldpb.RelayFrame{
		Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}},
	}, replyPresenceList)
	if err != nil {
		return nil, err
	}
	online := make([]PublicKey, 0, len(f.GetPresenceList().GetOnline()))
	for _, b := range f.GetPresenceList().GetOnline() {
		key, err := ParsePublicKey(b)
		if err != nil {
			return nil, fmt.Errorf("%w: presence list: %w", ErrProtocol, err)
		}
		online = append(online, key)
	}
	return online, nil
}
