// Package sqs is the job queue on AWS: it sends jobs to SQS and runs those in the events
// that Lambda gets from a queue.
//
// # Two queues
//
// Jobs without a group, and all delayed jobs, go to a standard queue. It delivers at least
// once and in any order, which the contract allows for such jobs. SQS delays a message by
// at most 900 seconds: a job for later arrives early and is sent again.
//
// Jobs with a group go to a FIFO queue when they are due, with the group as message
// group. They run one after another, in the order in which they became due, and a failed
// job blocks its group until it succeeds or is put aside. The stack has such a queue
// anyway, for the frames of connections (see package gateway/apigw/record). A group that
// is a connection shares the message group of its frames, so that a job of a connection
// never runs beside one of its frames.
//
// Without a FIFO queue (Options.FIFO empty) the order within a group is best effort. For
// the jobs of the core that means:
//
//   - "gone" takes a member offline on condition that the connection of the job is still
//     the current one. It may run late, twice or beside others.
//   - "pump" posts the mailbox of a connection and stops when the connection is no longer
//     draining or no longer current. Two at once may both post the same frames. The phone
//     then gets frames again, after newer ones, and drops them by their counters. Nothing
//     is lost, because a frame leaves the mailbox only after it was posted.
//   - "apigw.first" posts the first messages. It may run twice; a late one finds the
//     connection authenticated and posts nothing.
//   - "push" and the jobs of dialects have no group.
//
// # Failure
//
// A failed message is delivered again after a pause that grows with its attempts. After
// the number of deliveries in the redrive policy of the queue it goes to the dead-letter
// queue. SQS counts deliveries, not runs: when one message of a group fails, those behind
// it in the batch are delivered again too and have one delivery less. So a message at its
// last delivery no longer blocks its group, and is run three times within the remaining
// time before it is put aside. No message is put aside because earlier ones failed. (Only
// if the function is killed, its whole batch may be.) The dead-letter queue keeps the
// body of a message. It has no content, except that of a frame in the ingress queue,
// which is encrypted end to end.
package sqs
