// Package aelos is the two ends of the Aelos relay protocol, for tests and
// measurements: the boat and the viewer, as they speak to a relay and, past it,
// to each other. It is written from the specification (section numbers are
// those of aelos-relay-protocol.md) and shares no code with the relay's dialect,
// so that each checks the other.
//
// # What it promises
//
//   - The handshake and the sealing of section 5 are the real ones. They are
//     compared with libsodium, and with the vectors of RFC 5869.
//   - [Boat] and [Viewer] do no input or output: they take messages and return
//     messages, so they run over a WebSocket ([Dial]), in a simulation, or by
//     hand. Their randomness is given to them.
//   - What comes from the relay is taken at its word only as far as the protocol
//     goes: a frame that the schema does not know, or that does not belong on
//     this leg, is an error, and a payload that does not open is reported and
//     changes nothing.
//
// The specification leaves open how the bytes of a handshake become strings.
// Here they are standard base64 with padding; the relay does not look.
package aelos
