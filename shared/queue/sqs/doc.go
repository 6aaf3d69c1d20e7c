// Package sqs is the job queue on AWS: it sends jobs to SQS and takes them out of
// the events that Lambda makes of a queue.
//
// # Two queues
//
// Jobs without a group, and all that have to wait, go to a standard queue. It
// delivers at least once and in any order, which is what the contract asks for
// such jobs. SQS delays a message by 900 seconds at most: a job for later comes
// early and is sent again.
//
// Jobs with a group go to a FIFO queue when they are due, with the group as
// message group: one after another, in the order in which they became due, and
// a job that fails holds up its group until it is put aside. The stack has such a
// queue anyway, for the frames of connections (see package gateway/apigw/record),
// and a group that is a connection shares the message group of its frames, so
// that a job of a connection never runs beside one of its frames.
//
// Without a FIFO queue (Options.FIFO empty) the order within a group is best
// effort, as it is on a standard queue. For the jobs of the core that means:
//
//   - "gone" takes a member offline on condition that the connection of the job
//     still is the current one. Late, twice or beside others makes no difference.
//   - "pump" posts the mailbox of a connection and leaves off when it is no longer
//     draining or no longer current. Two at once may both post the same frames:
//     the phone gets frames again, after newer ones, and drops them by their
//     counters; nothing is lost, because a frame leaves the mailbox only when it
//     was posted.
//   - "apigw.first" says the first words; twice is harmless, and what comes late
//     finds the connection authenticated and is silent.
//   - "push" and the jobs of dialects have no group.
//
// # Failure
//
// A failed message comes back after a pause that grows with its attempts, and
// after as many deliveries as the redrive policy of the queue says it goes to the
// dead-letter queue. SQS counts deliveries and not runs: when one message of a
// group fails, those behind it in the batch are delivered again too, and have one
// less to come. So a message at its last delivery no longer holds up its group and
// is run three times before it is put aside, within what time there is; however
// often those before it have failed, none is put aside for it. (Only a function
// that is killed in the middle takes with it whoever was in its batch.) Its body
// stays with it there; it holds no content, but for a frame in the ingress queue,
// which is encrypted end to end.
package sqs
