//go:build race

package sim

// The race detector makes a schedule about ten times slower.
const slowdown = 10
