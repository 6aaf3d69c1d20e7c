package sim

// Mutation is a deliberate fault.
type Mutation struct {
	Name    string
	install func(s *sim)
}
