//go:build !race

package engine

const slowdown = 1
