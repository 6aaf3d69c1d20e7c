package apigwtest

import "time"

// unit is how many bytes API Gateway charges as one message.
const unit = 32 << 10

// Traffic is what API Gateway charges for.
type Traffic struct {
	// Connects are connections that were let in, Open is how long all of them
	// together have been open.
	Connects int64
	Open     time.Duration
	// In and Out are messages from and to peers, each begun 32 KB as one.
	In, Out           int64
	BytesIn, BytesOut int64
	// FramesIn are the messages from peers, whatever their size.
	FramesIn int64
}

// Since is what has been added to an earlier Traffic.
func (t Traffic) Since(earlier Traffic) Traffic {
	return Traffic{
		Connects: t.Connects - earlier.Connects, Open: t.Open - earlier.Open,
		In: t.In - earlier.In, Out: t.Out - earlier.Out,
		BytesIn: t.BytesIn - earlier.BytesIn, BytesOut: t.BytesOut - earlier.BytesOut,
		FramesIn: t.FramesIn - earlier.FramesIn,
	}
}

// Traffic is what there has been so far, connections that are open included.
func (e *Emulator) Traffic() Traffic {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.traffic
	for _, c := range e.conns {
		t.Open += time.Since(c.at)
	}
	return t
}

func (e *Emulator) countIn(bytes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.traffic.FramesIn++
	e.traffic.In += units(bytes)
	e.traffic.BytesIn += int64(bytes)
}

// countOut is called with the mutex held.
func (e *Emulator) countOut(bytes int) {
	e.traffic.Out += units(bytes)
	e.traffic.BytesOut += int64(bytes)
}

func units(bytes int) int64 { return int64(max(1, (bytes+unit-1)/unit)) }
