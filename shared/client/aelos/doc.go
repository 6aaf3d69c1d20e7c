// Package aelos implements both ends of the Aelos relay protocol, for tests and
// measurements: the boat and the viewer, with their end-to-end encryption. It is written
// from the specification (section numbers are those of aelos-relay-protocol.md) and shares
// no code with the relay's dialect, so that each checks the other.
//
// # What it promises
//
//   - The handshake and the sealing of section 5 are the real ones. They are
//     compared with libsodium, and with the vectors of RFC 5869.
//   - [Boat] and [Viewer] do no input or output: they take messages and return
//     messages, so they run over a WebSocket ([Dial]), in a simulation, or by
//     hand. Their randomness is given to them.
//   - Frames of the relay are checked: a frame that is not in the schema, or not
//     allowed for this end, is an error. A payload that does not open is reported
//     and changes nothing.
//
// The specification does not define the encoding of the handshake's bytes. Here it is
// standard base64 with padding; the relay does not decode it.
package aelos
