package sim

// kept are seeds that have failed once, each with what it has found. What they do
// changes with the relay, so each bug has a test of its own too.
var kept = []uint64{
	88001511,      // a sweeper that was held up takes for lost a connection that has opened meanwhile
	123000856,     // a Connect fails after it has joined, and the device is not woken
	224001124,     // a connection that was replaced opens after more than 30 s, and is not closed
	325001649,     // a device is found gone and not woken for what has come meanwhile
	1796086652135, // a join is done and reported as failed, and the connection that it has replaced stays open

	// In this one the model was wrong.
	1796088934585, // a client was suspended for a moment while it dialed
}
