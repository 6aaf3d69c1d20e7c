// Package localaws runs the compiled AWS functions on this machine, with stand-ins for
// what is around them: Lambda, SQS with its event sources, SNS, and DynamoDB. It is for
// tests and for trying things out, and can make everything fail that AWS can make fail.
//
// What stands in for what:
//
//   - Lambda: a server of the Invoke API and of the Runtime API, with as many processes
//     of a function as there are calls, each frozen between two of them and killed when
//     its time is over. (aws-lambda-rie, which SAM uses, has one process and takes one
//     call at a time; a smoke test holds the binaries against it all the same.)
//   - SQS: package sqstest behind the wire protocol of SQS. (kumo 0.33.1 brings messages of
//     a FIFO group that come back after their visibility timeout into an order of chance,
//     and forgets deduplication ids with their messages.)
//   - DynamoDB: dynoxide, built by .ci/standins/dynamo, behind a proxy that can throttle.
//   - SNS: a few calls of its wire protocol, with platform endpoints in memory.
//   - API Gateway: `blindpost serve --lambda`, in a process of its own.
package localaws

// Region is where the house stands.
const Region = "eu-central-1"

const account = "000000000000"
