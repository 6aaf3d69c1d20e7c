// Package stories tells what the whole relay does for Aelos, in one process: the conformance
// suite against it and against the binary, and what its settings do.
package stories
