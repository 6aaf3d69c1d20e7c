package costrun

import "time"

// What the run takes for granted about AWS: how long its services take to answer, as
// seen from a function in the same region, and what a function needs beside waiting.
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

	// platformLog is what Lambda itself writes for each call: START, END and REPORT,
	// and 26 bytes that CloudWatch counts for each line.
	platformLog = 380
	// eventLog is what CloudWatch counts for each line beside its text.
	eventLog = 26
	// accessLog is a line of the access log (see infra/api.go) with those 26 bytes.
	accessLog = 360
	// itemBytes is what DynamoDB counts for each stored item beside its content.
	itemBytes = 100
)

// assumed says so.
func assumed() []string {
	return []string{
		"a new process of a function takes " + initTime.String() + ", and lives for " + idleLife.String() + " without work",
		"a call works for " + workTime.String() + " and waits for " + readTime.String() + " for a read of DynamoDB, " + writeTime.String() +
			" for a write, " + transactTime.String() + " for a transaction, " + sendTime.String() + " for SQS, " + postTime.String() +
			" for a post to a connection, " + pushTime.String() + " for SNS",
		"Lambda logs 380 bytes for each call, API Gateway 360 for each connect, frame and disconnect",
		"a frame is taken out of its queue by a call of its own, unless more of its connection have come meanwhile",
	}
}
