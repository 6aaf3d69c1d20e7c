package main

import (
	"errors"
	"flag"

	"blindpost/shared/dialect/agentknock/attest"
)

// AgentknockSettings are those of the Agentknock protocol, but for its limits.
type AgentknockSettings struct {
	Attestation      attest.Demand
	AttestationRoots string // PEM file
}

func (s *Settings) agentknockFlags(f *settingsFlags) {
	f.group("Agentknock (needs a restart)")
	f.add((*demandValue)(&s.Agentknock.Attestation), "agentknock-attestation", "`demand` on the Android key attestation of a device that claims its id: off, check (one that is given has to be good) or require")
	f.add((*stringValue)(&s.Agentknock.AttestationRoots), "agentknock-attestation-roots", "PEM `file` with the root certificates that attestations have to lead to")

	f.group("Limits of Agentknock (can be changed while the relay runs)")
	l := &s.Limits.Agentknock
	f.add((*countValue)(&l.ClientExchangesPerMinute), "agentknock-client-exchanges-per-minute", "new `exchanges` a minute of one client; 0: no limit")
	f.add((*countValue)(&l.DeviceExchangesPerMinute), "agentknock-device-exchanges-per-minute", "new `exchanges` a minute of all clients of one device; 0: no limit")
	f.add((*countValue)(&l.ClientOpenExchanges), "agentknock-client-open-exchanges", "open `exchanges` of one client; 0: no limit")
	f.add((*countValue)(&l.DeviceOpenExchanges), "agentknock-device-open-exchanges", "open `exchanges` of one device; 0: no limit")
	f.add((*sizeValue)(&l.ClientStoredBytes), "agentknock-client-stored-bytes", "`bytes` that wait for delivery, of one client; 0: no limit")
	f.add((*sizeValue)(&l.DeviceStoredBytes), "agentknock-device-stored-bytes", "`bytes` that wait for delivery, of one device; 0: no limit")
	f.add((*countValue)(&l.FramesPerMinute), "agentknock-frames-per-minute", "`frames` a minute on one connection; 0: no limit")
	f.add((*durationValue)(&l.ExchangeTTL), "agentknock-exchange-ttl", "`time` that an exchange stays open without any activity")
	f.add((*durationValue)(&l.RecoveryTTL), "agentknock-recovery-ttl", "`time` that the state of an exchange can be asked for after its end")
	f.add((*durationValue)(&l.PairingTTL), "agentknock-pairing-ttl", "`time` that an admitted pairing attempt can be taken up again")
	f.add((*durationValue)(&l.WakeInterval), "agentknock-wake-interval", "shortest `time` between two pushes to one device")
}

func (s *Settings) checkAgentknock() error {
	l := s.Limits.Agentknock
	errs := []error{
		positive("agentknock-exchange-ttl", l.ExchangeTTL),
		inRange("agentknock-recovery-ttl", l.RecoveryTTL, 0, maxTTL),
		positive("agentknock-pairing-ttl", l.PairingTTL),
		inRange("agentknock-wake-interval", l.WakeInterval, 0, maxTTL),
	}
	a := s.Agentknock
	if err := attest.CheckPolicy(a.Attestation, a.AttestationRoots); err != nil {
		errs = append(errs, complaint("agentknock-attestation", "%w", err))
	}
	return errors.Join(errs...)
}

// nodeAttestation reads what the settings name.
func nodeAttestation(s AgentknockSettings) (attest.Policy, error) {
	p, err := attest.ReadPolicy(s.Attestation, s.AttestationRoots)
	if err != nil {
		return attest.Policy{}, complaint("agentknock-attestation-roots", "%w", err)
	}
	return p, nil
}

// demandValue is what is wanted of attestations.
type demandValue attest.Demand

var _ flag.Value = (*demandValue)(nil)

func (v *demandValue) String() string { return attest.Demand(*v).String() }

func (v *demandValue) Set(s string) error {
	d, err := attest.ParseDemand(s)
	if err != nil {
		return err
	}
	*v = demandValue(d)
	return nil
}
