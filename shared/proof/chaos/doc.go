// Package chaos breaks a running `blindpost serve` on purpose and checks from
// outside that it keeps its promises. It needs the Go tool and the loopback
// interface, nothing else; what only Linux can do to a process is left out
// elsewhere, and said to be.
//
//	go test ./shared/chaos -run TestChaos -chaos -count=1 -v -timeout 6m          # under 5 minutes
//	go test ./shared/chaos -run TestChaos -chaos -count=1 -v -timeout 3m -short   # under 1 minute
//
// Without -chaos only the checkers themselves are tested. -seed repeats the
// moments and orders that are drawn by chance, as far as the system lets it;
// -binary takes a relay that is built already, for instance with -race. One
// scenario is chosen with -run 'TestChaos/Kill'.
//
// # What it promises
//
//   - Every message is accounted for (ledger.go). Its sender numbers it, its
//     recipient compares every byte. A stored one counts as accepted when the
//     relay has answered a request behind it, on the same connection, and no
//     error came; all that was accepted must arrive, nothing may overtake, and
//     nothing may come again that was confirmed.
//   - The faults are real: SIGKILL, a file system without space, system calls that
//     take long or fail, networks that go silent, thousands of sockets.
//   - Everything that the relay has logged, at level debug, and everything that
//     its metrics have said is searched for payload, keys, tokens and nonces
//     (secrets.go).
//   - Whether it passes does not depend on how fast the machine is: bounds on time
//     are an order of magnitude wider than what they watch, and only there to end
//     what hangs.
//   - All relays are gone when it ends, however it ends.
//
// # Shape
//
// ledger.go, letter.go and secrets.go are the checkers. relay.go runs the binary,
// hold_linux.go holds up or fails its system calls; the network that can go silent
// is package tcpproxy. wire.go is a minimal WebSocket client, peer.go one connection of
// a member, member.go who there is, party.go a member that talks through all
// faults, probe.go one that measures. The scenarios are the tests.
package chaos
