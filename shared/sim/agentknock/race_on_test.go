//go:build race

package agentknock

// The race detector makes a schedule about ten times slower.
const slowdown = 10
