//go:build race

package engine

// The race detector makes a schedule about ten times slower.
const slowdown = 10
