package costrun

import "time"

// What the run assumes about AWS: how long its services take to answer, as
// seen from a function in the same region, and what a function needs besides waiting.
// All of it is on the cautious side.
const (
	initTime = 200 * time.Millisecond // of a new process; charged since August 2025
	workTime = 10 * time.Millisecond  // processor, at a seventh of one (256 MB)

	readTime     = 5 * time.Millisecond  // DynamoDB: GetItem, Query
	writeTime    = 8 * time.Millisecond  // DynamoDB: one item
	transactTime = 15 * time.Millisecond // DynamoDB: several
	sendTime     = 12 * time.Millisecond // SQS
	postTime     = 15 * time.Millisecond // @connections
	pushTime     = 50 * time.Millisecond // SNS

	// idleLife is how long Lambda keeps a process that does nothing.
	idleLife = 6 * time.Minute

	// platformLog is what Lambda itself writes for a call that went well: nothing, at
	// the system log level WARN (see infra/functions.go).
	platformLog = 0
	// eventLog is what CloudWatch counts for each line beside its text.
	eventLog = 26
	// accessLog is a line of the access log (see infra/api.go) with those 26 bytes.
	accessLog = 160
	// itemBytes is what DynamoDB counts for each stored item beside its content.
	itemBytes = 100
)

// assumed describes the assumptions in words.
func assumed() []string {
	return []string{
		"a new process of a function takes " + initTime.String() + ", and lives for " + idleLife.String() + " without work",
		"a call works for " + workTime.String() + " and waits for " + readTime.String() + " for a read of DynamoDB, " + writeTime.String() +
			" for a write, " + transactTime.String() + " for a transaction, " + sendTime.String() + " for SQS, " + postTime.String() +
			" for a post to a connection, " + pushTime.String() + " for SNS",
		"Lambda logs nothing for a call that went well, API Gateway 160 bytes for each connect, frame and disconnect",
		"a frame is taken out of its queue by a call of its own, unless more of its connection have come meanwhile",
	}
}
