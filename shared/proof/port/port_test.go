package port

import (
	"net"
	"testing"
)

// Whoever names a reserved port gets it, again and again, one at a time, and nobody else does.
func TestReserve(t *testing.T) {
	address := Reserve(t)
	for range 3 {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := net.Listen("tcp", address); err == nil {
			second.Close()
			t.Error("two listen on one port")
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		served, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		// The side that ends first keeps the port for a minute: it is the server's.
		served.Close()
		c.Close()
		l.Close()
	}
	seen := map[string]bool{}
	for range 200 {
		if other := Reserve(t); other == address || seen[other] {
			t.Fatalf("%s is reserved twice", other)
		} else {
			seen[other] = true
		}
	}
}
