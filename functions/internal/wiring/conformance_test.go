//go:build aws

package wiring_test

import (
	"net/http"
	"testing"

	"blindpost/shared/gateway/apigw"
	"blindpost/shared/proof/skald/conformance"
)

// The conformance suite of the Skald dialect against the functions. What carries
// the frames of its peers is a front with binary messages; behind it all is as with
// API Gateway.
func TestConformance(t *testing.T) {
	skip := map[string]string{}
	if testing.Short() {
		for _, name := range []string{"Property2_OrderWhileTheAgentReconnects", "Property2_OrderWhileAPhoneReconnects"} {
			skip[name] = "it takes half a minute and more"
		}
	}
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target {
		h := open(t, true, false, o.Environment()...)
		return conformance.Target{
			URL:        h.URL() + "/v1/ws",
			TLS:        h.Client().Transport.(*http.Transport).TLSClientConfig.Clone(),
			MaxMessage: apigw.MaxMessage / 4 * 3,
			MaxIdle:    100,
			NoHTTP:     true,
			Lacks: []string{
				// What is posted counts as delivered.
				"Section6_3_UnconfirmedComesAgain", "Hostile_SilentNetworkLosesNothing", "Hostile_SilentNetworkOfTheAgent", "Hostile_NetworkThatComesBack",
				// There are no pings.
				"Section8_PingsAndIdleTimeout", "Section8_SilentNetworkIsNoticed",
				// 128 KiB as base64.
				"Section5_TooManyKeys", "Section10_LiveSizeBeforeAuth", "Section10_MuchBeforeAuth", "Section10_LiveFrame",
				"Section10_NoStoredMessageOfLiveSize", "Hostile_StalledReaderHoldsUpNobody",
				// All peers come from one address, and there are no health checks.
				"Section10_ConnectionsPerIPAreEachTheirOwn", "FieldNotes_Healthz",
				// There is nothing to restart.
				"Restart_StateIsKept", "Property1_KillWhileTheRecipientIsAway", "Property1_KillWhileTheRecipientReads", "Property1_KillDuringPairing",
			},
			// The clean-up of one connection and the admission of the next run in
			// different processes.
			RepeatsPresence: true,
			Skip:            skip,
			Pushes: func() []conformance.Push {
				var out []conformance.Push
				for _, p := range h.sns.pushes() {
					out = append(out, conformance.Push{Token: p.token, Android: p.android, Payload: p.payload})
				}
				return out
			},
			Log: h.log.Bytes,
		}
	})
}
