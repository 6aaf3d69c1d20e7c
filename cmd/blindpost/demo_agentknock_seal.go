package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	peer "blindpost/shared/client/agentknock"
)

// sealer stands in for the cryptography between agent and phone, which the
// relay has no part in: the demo needs payloads that only these two can read.
type sealer struct{ aead cipher.AEAD }

type sealed struct {
	Nonce []byte `json:"nonce"`
	Text  []byte `json:"sealed"`
}

func newSealer() (sealer, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, fmt.Errorf("failed to make a key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return sealer{}, fmt.Errorf("failed to make a key: %w", err)
	}
	return sealer{aead}, nil
}

func (s sealer) seal(text string) json.RawMessage {
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce)
	payload, _ := json.Marshal(sealed{nonce, s.aead.Seal(nil, nonce, []byte(text), nil)}) // never fails
	return payload
}

// open reads what the other side has sealed.
func (s sealer) open(payload json.RawMessage) (string, error) {
	var v sealed
	if err := json.Unmarshal(payload, &v); err != nil || len(v.Nonce) != s.aead.NonceSize() {
		return "", errors.New("it is not sealed")
	}
	text, err := s.aead.Open(nil, v.Nonce, v.Text, nil)
	if err != nil {
		return "", errors.New("the seal is broken")
	}
	return string(text), nil
}

// read opens a payload and compares it with what was said.
func (s sealer) read(payload json.RawMessage, want string) error {
	got, err := s.open(payload)
	if err == nil && got != want {
		err = fmt.Errorf("it reads %q", got)
	}
	return err
}

// arrived waits for a message of an exchange on the phone, and compares it with what was
// said.
func (d *agentknockDemo) arrived(ctx context.Context, requestID, kind, want string) (peer.Incoming, error) {
	in, err := awaitEvent(ctx, d.inbox, "the "+kind, func(in peer.Incoming) bool { return in.RequestID == requestID && in.Kind == kind })
	if err == nil {
		err = d.box.read(in.Payload, want)
	}
	return in, err
}
