// Package invoke puts our own WebSocket server in front of the AWS functions. It calls
// them through the Lambda Invoke API, with the events of API Gateway, and serves their
// calls about connections (package callback). So clients that API Gateway cannot serve,
// because they send binary frames or large messages, use the same back end, and the
// functions can run without any API Gateway.
//
// # What it promises
//
//   - The front handles the frames of one connection in the order of their arrival.
//     It gives the next frame to functions/message when that has handled the one
//     before; with Options.Ingress, to the queue when that has accepted the one before.
//     After a frame that failed it closes the connection with 1011 and handles no more.
//   - A frame stays binary or text in both directions. Close codes reach the peer.
//   - Post succeeds when the message is in the buffer of its connection. As with API
//     Gateway the functions do not learn whether the peer received it (gateway.Sent).
//     The server closes a slow reader; posts to it answer "gone".
//   - The functions hear of the end of every connection, after its last frame, if they
//     can be reached then. If this process dies, their next call about the connection
//     fails, and they treat it as gone.
//   - Several fronts may invoke the same functions, together with API Gateway: each
//     connection carries the callback address of its front, and the functions call
//     only the addresses in BLINDPOST_FRONTS.
//
// # The events
//
// They are those of API Gateway with a CloudFront function in front of it: the path is
// in a query parameter. Values without a field in these events are in stage variables,
// see package record.
package invoke
