// Package wiring puts the relay together for Lambda: the settings from the
// environment, the AWS clients, and the four functions, each of which is one
// method of [App].
//
// At start a function reads its settings and refuses wrong ones; it connects to
// nothing. A client is made when a request first needs it.
package wiring
