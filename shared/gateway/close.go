package gateway

// CloseCode is a WebSocket close code (RFC 6455 section 7.4).
type CloseCode uint16

// Close codes that the relay sends. After a code marked "reconnect" a peer should
// dial again with backoff. After any other, a new connection would end in the same way.
const (
	CloseNormal      CloseCode = 1000 // the work is done
	CloseGoingAway   CloseCode = 1001 // reconnect: shutdown, or silent for too long
	CloseProtocol    CloseCode = 1002 // broken WebSocket framing
	CloseUnsupported CloseCode = 1003 // this kind of message is not accepted
	CloseNoStatus    CloseCode = 1005 // never sent: the peer gave no code
	CloseAbnormal    CloseCode = 1006 // never sent: the transport broke
	ClosePolicy      CloseCode = 1008 // not allowed: failed authentication, revoked, forbidden frame
	CloseTooLarge    CloseCode = 1009 // a message over the limit
	CloseInternal    CloseCode = 1011 // reconnect: a fault of the relay
	CloseTryLater    CloseCode = 1013 // reconnect, later: a rate limit

	CloseReplaced   CloseCode = 4001 // the same member has opened a newer connection
	CloseSuspended  CloseCode = 4002 // Agentknock: client suspended
	CloseRevoked    CloseCode = 4003 // Agentknock: client revoked
	CloseService    CloseCode = 4004 // Agentknock: service suspended
	CloseSlowReader CloseCode = 4008 // reconnect: the peer read too slowly
)
