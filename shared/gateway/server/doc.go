// Package server is Blindpost's own WebSocket front. It keeps the contract of
// package gateway and adds what API Gateway cannot do: it knows when a peer has
// really received a message, and it can close with a code and a reason.
//
// # What it promises
//
//   - Order: the frames and confirmations of one connection are handled one
//     after another on the connection's own goroutine; connections run in
//     parallel. Disconnect comes exactly once for every accepted connection,
//     when everything else of it has returned.
//   - No sender waits for a slow reader: Post copies and returns. The buffer of a
//     connection is bounded in bytes. A message over that bound closes the slow
//     reader's connection, never the sender's.
//   - A message with a mark is confirmed only by the pong to a ping that was
//     sent after it.
//   - A message over the read limit is refused by the length in its header, before
//     any of it is buffered.
//   - A client that speaks without TLS is refused before its request reaches a
//     handler, and so is one whose trusted proxy does not say that the client
//     came over TLS.
//   - Bad input closes the connection it came from with the code that RFC 6455
//     requires. A handler that panics closes its connection with 1011. The value of
//     the panic is never logged, as it may hold bytes of a peer.
//
// # What an idle connection costs
//
// One goroutine that waits to read a few bytes into the connection's own struct,
// that struct, and its entries in two maps; with TLS also the state of crypto/tls.
// There is no other goroutine, no timer, no buffer and nothing of net/http. The
// server takes a buffer from a pool when the peer sends and gives it back when
// all of it is handled. A write goroutine exists while there is something to
// write. One goroutine pings all connections and closes the silent ones.
//
// # Shape
//
// accept.go decides on requests, proxy.go on the client's address and whether it
// came over TLS. conn.go opens and closes a connection, read.go and frame.go read,
// write.go and cork.go write, confirm.go keeps the marks, keepalive.go pings.
package server
