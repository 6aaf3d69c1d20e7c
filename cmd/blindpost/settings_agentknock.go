package main

import "errors"

func (s *Settings) agentknockFlags(f *settingsFlags) {
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
	return errors.Join(
		positive("agentknock-exchange-ttl", l.ExchangeTTL),
		inRange("agentknock-recovery-ttl", l.RecoveryTTL, 0, maxTTL),
		positive("agentknock-pairing-ttl", l.PairingTTL),
		inRange("agentknock-wake-interval", l.WakeInterval, 0, maxTTL),
	)
}
