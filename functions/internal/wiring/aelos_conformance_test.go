//go:build aws

package wiring_test

import (
	"net/http"
	"testing"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/proof/aelos/conformance"
)

// The conformance suite of the Aelos dialect against the functions, by way of what
// API Gateway is: payloads are base64 in text frames, there are no close codes, and
// no pings.
func TestAelosConformance(t *testing.T) {
	runAelos(t, false)
}

// The same with a front in between that carries binary messages.
func TestAelosConformanceBinaryFront(t *testing.T) {
	runAelos(t, true)
}

func runAelos(t *testing.T, binary bool) {
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target {
		env := append(o.Environment(), "BLINDPOST_AELOS_SECRET_ARN="+aelosARN, "BLINDPOST_AELOS_CLOCK_LEEWAY=0s")
		h := open(t, binary, false, env...)
		return conformance.Target{
			URL:    h.URL() + aelos.Path,
			TLS:    h.Client().Transport.(*http.Transport).TLSClientConfig.Clone(),
			Secret: []byte(aelosSecret),
			Base64: !binary,
			Lacks: []string{
				// There are no pings.
				"Section2_LivenessSweep", "Vanish_AViewerWithoutAFIN", "Vanish_ABoatWithoutAFIN", "Vanish_TheLastViewerFreesItsPlace",
				// It loses no snapshot.
				"Section4_SlowViewerLosesSnapshots", "Section4_SlowBoatLosesNoCommandInSilence",
				// There is nothing to restart.
				"Restart_EverybodyComesBack", "Kill_EverybodyComesBack",
			},
			// The clean-up of one connection and the admission of the next run in
			// different processes.
			Repeats: true,
			Mute:    func() { h.mute.Store(true) },
			Log:     h.log.Bytes,
		}
	})
}
