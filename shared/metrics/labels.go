package metrics

import "blindpost/shared/gateway"

// dialects are all wire protocols.
var dialects = []string{"skald", "agentknock", "aelos"}

// The closed sets of label values. A value that is missing here is counted as "other".
var (
	roles     = newSet("agent", "client", "pairing", "device", "boat", "viewer")
	classes   = newSet("stored", "live")
	platforms = newSet("ios", "android")
	pushKinds = newSet("content", "wake")

	// authResults are "ok" and the error codes with which the dialects refuse.
	authResults = newSet("ok",
		"challenge_timeout", "invalid_signature", "unauthorized", "not_found", "pairing_closed",
		"rate_limited", "payload_too_large", "bad_request",
		"forbidden", "conflict", "auth", "proto", "boat-offline", "limit", "internal")

	// refusals are why an upgrade is refused.
	refusals = newSet("rate_limited", "not_tls", "not_websocket", "not_found", "bad_request",
		"unauthorized", "forbidden", "conflict", "too_many_connections", "shutting_down", "dialect", "internal")

	// outcomes are the outcomes of sending a message.
	outcomes = newSet("delivered", "stored", "queued", "peer_offline",
		"queue_full", "not_found", "too_large", "stale_sender")

	// drops are the rules by which a message is dropped.
	drops = newSet("expired", "revoked", "namespace_deleted", "queue_full", "stale_sender", "not_found",
		"too_large", "too_large_for_front", "rate_limited", "connection_lost",
		"undecodable", "slow_reader", "forbidden", "proto", "peer_offline")

	pushResults  = newSet("ok", "token_gone", "failed")
	operations   = newSet("get", "query", "write", "transact")
	tableResults = newSet("ok", "not_found", "condition", "busy", "too_large", "invalid", "canceled", "failed")
	events       = newSet("connect", "frame", "confirmed", "disconnect", "job", "front")
	jobResults   = newSet("ok", "failed")
)

// frameKinds are the kinds of frames that peers send, by dialect. "undecodable" cannot be
// decoded; "relay_only" and "unexpected" are frames that the peer must not send.
var frameKinds = map[string][]string{
	"skald": {"auth", "authorize", "pairing_start", "pairing_stop", "message", "presence_request",
		"relay_only", "text", "oversize", "undecodable", "empty"},
	"agentknock": {"message", "ack", "resume", "set_client_state", "rate_limited", "oversize", "undecodable"},
	"aelos": {"hello", "hs1", "hs2", "ping", "pong", "snapshot", "result", "command", "identify",
		"unexpected", "oversize", "undecodable"},
}

// upgradeStatuses are the HTTP statuses with which a front refuses an upgrade.
var upgradeStatuses = []int{400, 401, 403, 404, 405, 409, 426, 429, 500, 503}

// closeCodes are the codes that a connection can end with.
var closeCodes = []gateway.CloseCode{
	gateway.CloseNormal, gateway.CloseGoingAway, gateway.CloseProtocol, gateway.CloseUnsupported,
	gateway.CloseNoStatus, gateway.CloseAbnormal, gateway.ClosePolicy, gateway.CloseTooLarge,
	gateway.CloseInternal, gateway.CloseTryLater, gateway.CloseReplaced, gateway.CloseSuspended,
	gateway.CloseRevoked, gateway.CloseService, gateway.CloseSlowReader,
}

// jobKinds are the kinds of jobs; those of a dialect carry its name.
var jobKinds = []string{"push", "gone", "pump", "sweep", "skald.timeout", "skald.linger",
	"agentknock.drain", "agentknock.deliver", "agentknock.wake", "agentknock.evict", "agentknock.purge",
	"aelos.hello", "aelos.expiry", "aelos.settle"}
