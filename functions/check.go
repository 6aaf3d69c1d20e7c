// Package functions checks the settings of the functions: each function at its start, and the stack before it deploys
// anything.
package functions

import (
	"errors"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/dialect/skald"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/settings"
)

// MaxFrame is the largest frame in bytes of which the base64 fits into a message of API Gateway.
const MaxFrame = apigw.MaxMessage / 4 * 3

// Check finds settings that are missing for a function, or contradict each other. What each must be by itself is declared.
func Check(v settings.Values, function settings.Readers) error {
	errs := []error{skald.CheckSettings(v), agentknock.CheckSettings(v), aelos.CheckSettings(v)}
	when := func(wrong bool, n settings.Named, format string, args ...any) {
		if wrong {
			errs = append(errs, v.Wrong(n, format, args...))
		}
	}
	// With an ingress queue, functions/disconnect only puts the end of a connection into it.
	if function != settings.Disconnect || settings.IngressQueueURL.Of(v) == "" {
		when(settings.Table.Of(v) == "", settings.Table, "it is missing")
		when(settings.JobsQueueURL.Of(v) == "", settings.JobsQueueURL, "it is missing")
	}
	fronts := settings.Fronts.Of(v)
	for _, address := range fronts {
		err := apigw.CheckFront(address)
		when(err != nil, settings.Fronts, "%w", err)
	}
	when(len(fronts) > 0 && settings.FrontSecretARN.Of(v) == "" && settings.FrontSecretFile.Of(v) == "",
		settings.Fronts, "it needs %s or %s", settings.FrontSecretARN, settings.FrontSecretFile)
	when(settings.AelosSecretARN.Of(v) != "" && settings.AelosSecretFile.Of(v) != "",
		settings.AelosSecretARN, "it excludes %s", settings.AelosSecretFile)
	when(settings.AelosMaxFrame.Of(v) > MaxFrame, settings.AelosMaxFrame, "it must be at most %d on AWS", MaxFrame)
	return errors.Join(errs...)
}
