// Package callback lets the functions act on the connections of a front of our own
// (package invoke): the front serves a [Handler], the functions use a [Client].
//
// It is the @connections API of API Gateway, with its paths and status codes:
//
//	POST   {address}/@connections/{id}   sends the body as one message
//	GET    {address}/@connections/{id}   returns its status, in JSON
//	DELETE {address}/@connections/{id}   closes it
//
//	200, 204  done
//	202       a droppable message was dropped
//	400       the id or the request is malformed
//	403       the secret is wrong or missing
//	410       the connection is closed
//	413       the message is larger than this front carries
//	429       too much at once: try again
//
// There are four differences. A request carries a shared secret instead of a signature
// (Authorization: Bearer). A message is a text frame, as with API Gateway, but with the
// header [FrameHeader] it may be binary. A message with the header [DroppableHeader] is
// dropped for a peer that reads slowly (see gateway.Message). DELETE takes a close code
// and a reason, in the query parameters "code" and "reason".
//
// POST succeeds when the message is in the buffer of its connection. As with API
// Gateway, the peer may still not receive it.
//
// Neither side puts the secret or the content of a message into a log or an error.
package callback

// FrameHeader is the kind of a posted message: Binary or Text. DroppableHeader is "true"
// for a droppable one.
const (
	FrameHeader     = "Blindpost-Frame"
	Binary          = "binary"
	Text            = "text"
	DroppableHeader = "Blindpost-Droppable"
)

const (
	pathPart    = "/@connections/"
	codeParam   = "code"
	reasonParam = "reason"
	bearer      = "Bearer "
)

// maxID is the length of the longest connection id.
const maxID = 128

// ValidID reports whether id has the form of a connection id of API Gateway.
func ValidID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '=' {
			return false
		}
	}
	return true
}
