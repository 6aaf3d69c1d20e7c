// Package invoke puts our own WebSocket server in front of the AWS functions: it
// calls them through the Lambda Invoke API, with the events of API Gateway, and takes
// their calls about connections (package callback). So clients that API Gateway
// cannot serve, because they send binary frames or large messages, have the same
// back end, and so can the functions be run where there is no API Gateway at all.
//
// # What it promises
//
//   - Frames of one connection are handled in the order in which they came, each when
//     the one before it has been: by functions/message, or with Options.Ingress, by
//     the queue that has taken it. The frame after one that failed is never handled:
//     the connection is closed with 1011.
//   - A frame is binary or text for the functions as it was for the peer, and so is
//     a message for the peer as it was for them. Close codes reach the peer.
//   - A message that was posted is in the buffer of its connection, and no more is
//     known: as with API Gateway the functions hear nothing of its receipt
//     (gateway.Sent). A slow reader is closed; posts to it answer "gone".
//   - The functions hear of the end of every connection, after its last frame, if they
//     can be reached then. If this process dies they find out with the next call about
//     the connection, which nobody answers.
//   - Several fronts may invoke the same functions, together with API Gateway: each
//     connection carries the callback address of its front, and the functions call
//     only addresses that they have been told (BLINDPOST_FRONTS).
//
// # The events
//
// They are those of API Gateway with a CloudFront function in front of it: the path is
// in a query parameter. What API Gateway has no field for is in stage variables, see
// package record.
package invoke
