// Package apigw is the API Gateway WebSocket front: it turns the events that
// Lambda functions get into calls of a gateway.Handler ([Adapter]), and the
// actions of gateway.Front into calls of @connections ([Front]).
//
// What this front cannot do, and what the adapter makes of it:
//
//   - It carries text only. A binary message travels as base64 in a text frame,
//     both ways; handlers never see that. Text from a peer that is not base64
//     reaches the handler as a text frame. (A dialect of text frames must
//     therefore not use words that happen to be base64, such as "ping".)
//   - Nothing can be posted before the function of $connect has returned.
//     ConnectResult.First becomes a job, see [JobFirst].
//   - It cannot tell when a peer has a message: Post answers gateway.Sent, and no
//     Confirmed ever comes.
//   - It has no close codes: the peer always sees a normal closure.
//   - Its limits on a message are fixed: 128 KB, in frames of 32 KB, after base64.
//     A read limit of a connection is not kept; Options.MaxFrame holds for all,
//     and a dialect checks sizes of its own.
//   - It delivers frames of one connection concurrently. In order they come only
//     by way of a FIFO queue, see package record.
//   - Disconnect may be late, or never come.
package apigw
