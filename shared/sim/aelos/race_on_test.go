//go:build race

package aelos

// The race detector makes a schedule about ten times slower.
const slowdown = 10
