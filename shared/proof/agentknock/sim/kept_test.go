package sim

// kept are seeds that have failed once, each with what it has found. What they do
// changes with the relay, so each bug has a test of its own too.
var kept = []uint64{}
