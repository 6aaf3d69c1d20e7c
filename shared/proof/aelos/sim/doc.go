// Package sim runs the real core with the Aelos dialect in the world of package
// engine: boats that break off, come back and take over from themselves, and viewers
// that come and go, shake hands, command and look on.
//
// # The model
//
// The roster (roster.go) is watched as it is written: there are never more viewers than
// allowed, and a tag belongs to one connection for ever. The wire (wire.go) looks at
// every frame as it is posted: a tag is always that of the sender, nothing reaches
// another viewer, boat or organisation, nobody without the role commands, what a boat is
// told adds up, a viewer hears welcome first, payloads pass as they are, refusals have a
// reason, and between two connections nothing overtakes. finish.go says what must be true
// when the faults have stopped: what boats and viewers believe is so, nobody is there
// without a token, sessions carry what they should, and who is not heard is told so.
//
// roster.go and the mutations are the only files that know how the dialect lays out its
// item.
package sim
