// Package stories tells what the whole relay does for Skald, in one process: the conformance
// suite against it and against the binary, and what takes time, in a synctest bubble.
package stories
