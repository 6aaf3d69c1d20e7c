// Package callback is how the functions act on the connections of a front of our own
// (package invoke): a [Handler] at the front, a [Client] in the functions.
//
// It is the @connections API of API Gateway, with its paths and status codes:
//
//	POST   {address}/@connections/{id}   sends the body as one message
//	GET    {address}/@connections/{id}   tells about the connection, in JSON
//	DELETE {address}/@connections/{id}   closes it
//
//	200, 204  done
//	202       the message was dropped, as it allowed
//	400       the id cannot be one, or the request makes no sense
//	403       the secret is wrong or missing
//	410       the connection is no more
//	413       the message is larger than this front carries
//	429       too much at once: try again
//
// and with four differences. A request proves itself with a shared secret instead of a
// signature (Authorization: Bearer). A message is a text frame, as with API Gateway,
// unless the request has the header [FrameHeader]: then it may be binary. With the
// header [DroppableHeader] it is dropped for a peer that reads slowly (see
// gateway.Message). And DELETE takes a close code and a reason, in the query parameters
// "code" and "reason".
//
// A message is posted when it is in the buffer of its connection. As with API Gateway,
// that is no promise that the peer gets it.
//
// Neither side logs the secret or what a message holds, nor has it in an error.
package callback

// FrameHeader says what kind of frame a posted message is: Binary or Text.
// DroppableHeader is "true" for one that may be dropped.
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
