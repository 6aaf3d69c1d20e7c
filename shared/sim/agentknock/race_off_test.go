//go:build !race

package agentknock

const slowdown = 1
