package agentknock

import "time"

// Limits are those of the dialect. A zero value lifts a rate or a cap. See
// DefaultLimits.
type Limits struct {
	// ClientExchangesPerMinute and DeviceExchangesPerMinute are how many exchanges one
	// client, and all clients of one device, may begin per minute.
	ClientExchangesPerMinute int64
	DeviceExchangesPerMinute int64
	// ClientOpenExchanges and DeviceOpenExchanges are how many may be open or closing
	// at a time.
	ClientOpenExchanges int64
	DeviceOpenExchanges int64
	// ClientStoredBytes and DeviceStoredBytes are how many bytes of payload may wait
	// for their recipients, in both directions.
	ClientStoredBytes int64
	DeviceStoredBytes int64
	// FramesPerMinute is how many frames one connection may send in a minute.
	FramesPerMinute int64

	// ExchangeTTL is how long an exchange stays open without any activity.
	ExchangeTTL time.Duration
	// RecoveryTTL is how long the state of an exchange can be asked for after its end.
	RecoveryTTL time.Duration
	// PairingTTL is how long a client can connect again with an admitted pairing attempt.
	PairingTTL time.Duration
	// WakeInterval is the shortest time between two pushes to one device.
	WakeInterval time.Duration
}

// share is the part of a limit of the device that exchanges of initial pairings may use:
// every client that knows the address can begin them, and must not use up the limit of
// the enrolled clients. It is a quarter, but no less than floor.
func share(limit, floor int64) int64 { return min(limit, max(limit/4, floor)) }

const (
	// minPairings is how many pairings there is always room for.
	minPairings = 8

	minute = time.Minute
	// capacityRetry is how long a peer is told to wait when a limit on what is
	// stored is reached: when there will be room is not known.
	capacityRetry = 30 * time.Second
)
