package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/gateway"
)

// relayWords explain the error codes of the relay to a person who chats.
var relayWords = map[string]string{
	skaldclient.CodeChallengeTimeout: "the relay waited too long for our answer",
	skaldclient.CodeInvalidSignature: "the relay does not accept our signature: the state file may be damaged",
	skaldclient.CodeUnauthorized:     "the agent has not allowed this client",
	skaldclient.CodeNotFound:         "the relay does not know the recipient, or this namespace",
	skaldclient.CodePairingClosed:    "the pairing code was used before, has expired, or was replaced by a newer one",
	skaldclient.CodeRateLimited:      "too much at once: the relay limits messages per minute; the last one was not taken",
	skaldclient.CodePayloadTooLarge:  "the message is larger than the relay takes",
	skaldclient.CodeQueueFull:        "the recipient's mailbox at the relay is full, so the message was not taken; there is room again when the recipient has connected",
	skaldclient.CodeBadRequest:       "the relay cannot make sense of what we sent",
}

// errorWords do the same for errors of the client library.
var errorWords = []struct {
	err   error
	words string
}{
	{skaldclient.ErrReplaced, "this identity has connected from somewhere else: only one can be connected"},
	{skaldclient.ErrLocked, "another process is using this state file: end it, or give this one another with --state"},
	{skaldclient.ErrKeyChanged, "the other side shows a key that differs from the one known for it"},
	{skaldclient.ErrUnknownPeer, "there is no allowed client like that"},
	{skaldclient.ErrReplay, "it came a second time"},
	{skaldclient.ErrOpen, "it does not decrypt: it was changed on the way, or is not meant for us"},
	{skaldclient.ErrFraming, "its content has an unknown form"},
	{skaldclient.ErrPayload, "its content has an unknown form"},
	{skaldclient.ErrTooLarge, "it is too long: at most 65,000 bytes wait at the relay, 524,000 go live"},
	{skaldclient.ErrSilent, "the relay does not answer any more"},
	{skaldclient.ErrNotConnected, "there is no connection to the relay now"},
	{skaldclient.ErrNotPaired, "this client is not paired with an agent"},
	{context.DeadlineExceeded, "it took too long"},
	{syscall.ECONNREFUSED, "nothing listens at this address (`blindpost serve` starts a relay)"},
	{syscall.ECONNRESET, "the connection was cut"},
	{syscall.ENETUNREACH, "the network cannot be reached"},
	{syscall.EHOSTUNREACH, "the host cannot be reached"},
}

// explain says in plain words what an error means. An unknown error it repeats,
// made fit to print.
func explain(err error) string {
	var relay *skaldclient.RelayError
	if errors.As(err, &relay) {
		if words, ok := relayWords[relay.Code]; ok {
			return words
		}
	}
	for _, e := range errorWords {
		if errors.Is(err, e.err) {
			return e.words
		}
	}
	var closed *skaldclient.CloseError
	if errors.As(err, &closed) {
		return closeWords(closed)
	}
	var name *net.DNSError
	if errors.As(err, &name) {
		return "no such host: " + foreign(name.Name)
	}
	if isCertificateError(err) {
		return "the relay's certificate is not trusted on this computer; for a relay of your own, give its certificate with --ca FILE, or --insecure to try things out"
	}
	return foreign(err.Error())
}

func closeWords(c *skaldclient.CloseError) string {
	switch c.Code {
	case gateway.CloseGoingAway:
		return "the relay is shutting down"
	case gateway.ClosePolicy:
		return "the relay ended the connection: " + foreign(c.Reason)
	}
	if c.Reason == "" {
		return "the relay ended the connection"
	}
	return "the relay ended the connection: " + foreign(c.Reason)
}

func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError // what package tls makes of all errors of x509
	return errors.As(err, &verification) || strings.Contains(err.Error(), "x509: ")
}
