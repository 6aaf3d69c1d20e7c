// Package port gives a test loopback addresses that processes of its own listen on, again
// and again.
package port

import "testing"

// Reserve returns an address with a port that the system has chosen. Until the test ends
// the system gives it to nobody else, and a process that asks for it gets it, also when it
// is started again. (Where the system cannot do that, the port is only free right now.)
func Reserve(t testing.TB) string {
	t.Helper()
	address, release, err := reserve()
	if err != nil {
		t.Fatalf("failed to reserve a port: %v", err)
	}
	t.Cleanup(release)
	return address
}
