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
//   - Nobody waits for a slow reader: Post copies and returns. What is buffered
//     for one connection is bounded in bytes; one message more closes that
//     connection, never the sender.
//   - A message with a mark is confirmed only by the pong to a ping that was
//     sent after it.
//   - A message over the read limit is refused by what its header announces,
//     before any of it is buffered.
//   - A client that speaks without TLS is refused before its request reaches a
//     handler, and so is one whose trusted proxy does not say that the client
//     came over TLS.
//   - Bad input ends the connection it came from with the code that RFC 6455
//     asks for. A handler that panics ends its connection with 1011; the panic's
//     value is never logged, as it may hold what a peer has sent.
//
// # What an idle connection costs
//
// One goroutine that waits in a read of a few bytes inside the connection's own
// struct, that struct, and its place in two maps; for TLS also what crypto/tls
// keeps. No other goroutine, no timer, no buffer, nothing of net/http. A buffer
// is taken from a pool when the peer speaks and given back when all of it is
// handled; a write goroutine exists while there is something to write; one
// goroutine for all connections pings and finds the silent ones.
//
// # Shape
//
// accept.go decides on requests, proxy.go on who the client is and whether it
// came over TLS. conn.go holds the life of a connection, read.go and frame.go
// what comes in, write.go and cork.go what goes out, confirm.go the marks,
// keepalive.go the pings, shutdown.go the end.
package server
