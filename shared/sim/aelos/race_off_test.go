//go:build !race

package aelos

const slowdown = 1
