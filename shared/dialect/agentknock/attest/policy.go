package attest

import "errors"

// Demand is what a relay wants of the claims of devices.
type Demand uint8

// The demands.
const (
	Off     Demand = iota // attestations are not looked into
	Check                 // one that is given has to be good
	Require               // there has to be a good one
)

var demands = [...]string{Off: "off", Check: "check", Require: "require"}

// ParseDemand reads the name of a demand.
func ParseDemand(s string) (Demand, error) {
	for d, name := range demands {
		if name == s {
			return Demand(d), nil
		}
	}
	return Off, errors.New("it must be off, check or require")
}

// String is the name of the demand.
func (d Demand) String() string {
	if int(d) < len(demands) {
		return demands[d]
	}
	return "unknown"
}

// Policy is a demand with what it takes to see whether it is met.
type Policy struct {
	Demand Demand
	Roots  *Roots
}

// ReadPolicy reads the roots of a policy, if it needs any.
func ReadPolicy(d Demand, rootsFile string) (Policy, error) {
	if d == Off {
		return Policy{}, nil
	}
	roots, err := ReadRoots(rootsFile)
	return Policy{Demand: d, Roots: roots}, err
}

// CheckPolicy finds settings that contradict each other. The roots without a demand are
// such: whoever names them believes that something is checked.
func CheckPolicy(d Demand, rootsFile string) error {
	switch {
	case d != Off && rootsFile == "":
		return errors.New("it needs a file with the roots to trust")
	case d == Off && rootsFile != "":
		return errors.New("roots are named, so it must be check or require")
	}
	return nil
}
