package sim

// The properties, as a failure names them.
const (
	propLoss     = "1 (nothing accepted is lost)"
	propOrder    = "2 (order)"
	propCap      = "3 (the cap is exact)"
	propPresence = "4 (a replaced connection is history)"
	propRevoked  = "5 (revoked means silent)"
	propPairing  = "6 (a pairing token opens one door once)"
	propBytes    = "7 (bytes are bytes, and secret)"
	propExpiry   = "8 (expiry by the clock)"
	propTwice    = "duplicates only where a confirmation was lost"
	propWake     = "a sleeping phone is woken"
	propStuck    = "what is accepted arrives in the end"
	propAnswer   = "answers are true"
)
