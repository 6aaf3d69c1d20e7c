package server

import "fmt"

// check holds the counts of open connections against each other. It is exact
// only while no connection opens or ends.
func (s *Server) check() error {
	registered := len(s.conns.all())
	s.gate.mu.Lock()
	inside := s.gate.n
	s.gate.mu.Unlock()
	s.wheel.mu.Lock()
	tended, inSlots := s.wheel.n, 0
	for _, c := range s.wheel.heads {
		for ; c != nil; c = c.next {
			inSlots++
		}
	}
	s.wheel.mu.Unlock()
	if registered != inside || inside != tended || tended != inSlots {
		return fmt.Errorf("connections do not add up: %d registered, %d through the gate, %d tended, %d in the wheel",
			registered, inside, tended, inSlots)
	}
	return nil
}
