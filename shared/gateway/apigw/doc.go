// Package apigw is the API Gateway WebSocket front: it turns the events that
// Lambda functions get into calls of a gateway.Handler ([Adapter]), and the
// actions of gateway.Front into calls of @connections ([Front]).
//
// This front has limits that our own server does not have:
//
//   - It carries text only. A binary message travels as base64 in a text frame,
//     both ways; handlers never see that. Text from a peer that is not base64
//     reaches the handler as a text frame. (A dialect of text frames must
//     therefore not use words that happen to be base64, such as "ping".)
//   - Nothing can be posted before the function of $connect has returned.
//     ConnectResult.First becomes a job, see [JobFirst].
//   - It cannot tell when a peer has received a message: Post answers gateway.Sent,
//     and no Confirmed ever comes.
//   - It has no close codes: the peer always sees a normal closure.
//   - Its limits on a message are fixed: 128 KB, in frames of 32 KB, after base64.
//     It ignores the read limit of a connection; Options.MaxFrame applies to all, and
//     a dialect checks its own sizes.
//   - It delivers frames of one connection concurrently. A FIFO queue puts them in
//     order, see package record.
//   - Disconnect may be late, or never come.
package apigw
