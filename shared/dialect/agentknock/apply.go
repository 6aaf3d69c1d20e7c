package agentknock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// maxTries bounds how often a change is decided again because something has changed
// meanwhile. Within one process that does not happen.
const maxTries = 32

// move is what a frame wants of an exchange.
type move struct {
	scope
	event Event
	// resume asks for the state instead: it is no event, but it is activity.
	resume bool
	// payload is that of a message that is sent.
	payload []byte
	// conn is the connection of a client that publishes or resumes, and connAt when it
	// was opened.
	conn   gateway.Conn
	connAt time.Time
	// self is the device, of a frame of a client.
	self *relay.Member
	// frame tells a frame that is delivered again, see relay.Conn.FrameID, and device
	// whose frame it is.
	frame  string
	device bool
	// pairing is the attempt of a connection for an initial pairing: what the client
	// record is made of, if there is none yet.
	pairing *attempt
}

// outcome is what became of a move.
type outcome struct {
	// x is the exchange after it, nil if there is none.
	x       *record
	verdict Verdict
	// again says that the frame was handled before, perhaps not to its end: it is
	// answered as if it were the first time.
	again bool
	// remind says that the device is to be sent once more what it has not acked: the
	// handler that has accepted it may have died before it sent it.
	remind bool
	// taken says that the device has the request, as is known since this move, or since
	// the first time that it was handled.
	taken bool
	// payload is that of the move, if it was accepted now.
	payload []byte
}

// apply carries a move out. A *fault is the answer to a move that is not admitted.
func (d *Dialect) apply(ctx context.Context, h deviceKeys, m move) (outcome, error) {
	counted := false
	for range maxTries {
		out, err := d.tryApply(ctx, h, m)
		switch {
		case errors.Is(err, table.ErrCondition):
			continue
		case errors.Is(err, errFull):
			if counted {
				return outcome{}, &fault{codeCapacityExceeded, "too much is waiting already", capacityPause}
			}
			// The counters may count what has expired.
			if err := d.recount(ctx, h, m.Client); err != nil {
				return outcome{}, err
			}
			counted = true
			continue
		}
		return out, err
	}
	return outcome{}, fmt.Errorf("failed to change an exchange: %w", table.ErrBusy)
}

// errFull says that a limit on what is stored seems to be reached.
var errFull = errors.New("a limit is reached")

func (d *Dialect) tryApply(ctx context.Context, h deviceKeys, m move) (outcome, error) {
	client, err := d.loadClient(ctx, h, m.Client)
	if err != nil {
		return outcome{}, err
	}
	x, err := d.loadExchange(ctx, h, m.Request, client != nil && client.State == stateRevoked)
	if err != nil {
		return outcome{}, err
	}
	var holds []table.Op
	if m.pairing != nil {
		if holds, err = d.attemptHolds(ctx, h, m, client); err != nil {
			return outcome{}, err
		}
	}
	switch {
	case x != nil && x.Client != m.Client:
		return foreign(m)
	case x != nil && x.Live() && client == nil:
		// They were made in one step, after the client was looked for.
		return outcome{}, table.ErrCondition
	case x == nil && m.event == RequestSent && !m.resume:
		return d.begin(ctx, h, m, client, holds)
	case x == nil && m.event == CompletionSent && !m.resume:
		return d.useUp(ctx, h, m, client, holds)
	case x == nil:
		return outcome{verdict: verdictOfUnknown(m)}, nil
	}
	if m, err = d.current(ctx, m, x); err != nil {
		return outcome{}, err
	}
	out, s := m.decide(x, d)
	if s == nil {
		return out, nil
	}
	s.deviceKeys, s.client = h, client
	if _, bytes := s.growth(); bytes > 0 {
		u, err := d.loadUsage(ctx, h)
		if err != nil {
			return outcome{}, err
		}
		if d.full(u, client, 0, bytes, s.pairs() && s.kind != response) {
			return outcome{}, errFull
		}
		s.pairing = u.pairing
	}
	if err := d.write(ctx, s); err != nil {
		return outcome{}, err
	}
	return out, nil
}

// current takes the connection out of a move if that is no more, as far as the front
// knows: frames of two connections come in any order, and what comes late on the older
// one need not be answered there.
func (d *Dialect) current(ctx context.Context, m move, x *record) (move, error) {
	if m.conn == "" || slices.Contains(x.Conns, m.conn) || !m.connAt.Before(x.ConnAt) {
		return m, nil
	}
	_, err := d.core.Front().Stat(ctx, m.conn)
	if errors.Is(err, gateway.ErrGone) {
		m.conn, err = "", nil
	}
	return m, err
}

// foreign answers a move on an exchange of another client: for this one there is no
// such exchange, and none can be.
func foreign(m move) (outcome, error) {
	if m.event == RequestSent && !m.resume {
		return outcome{}, &fault{code: codeRequestIDConflict, message: "the request id belongs to another exchange"}
	}
	if m.event == CompletionSent && !m.resume {
		return outcome{verdict: Repeated}, nil
	}
	return outcome{verdict: verdictOfUnknown(m)}, nil
}

// verdictOfUnknown is the verdict where there is no exchange.
func verdictOfUnknown(m move) Verdict {
	if !m.resume && (m.event == RequestTaken || m.event == ResponseTaken || m.event == CompletionTaken) {
		return Ignored
	}
	return Dead
}

// decide says what a move does to an exchange. The step is nil if there is nothing to
// write.
func (m move) decide(x *record, d *Dialect) (outcome, *step) {
	now, lim := d.core.Now(), d.lim()
	y := x.next()
	verdict := Repeated
	if !m.resume {
		y.Exchange, verdict = x.Next(m.event)
	} else if !x.Live() && x.Phase != Settled && x.Phase != Expired {
		verdict = Dead
	}
	changed := y.Exchange != x.Exchange
	accepted := m.payload != nil && y.of(m.Kind) == Accepted && x.of(m.Kind) != Accepted
	out := outcome{x: y, verdict: verdict, again: m.frame != "" && m.frame == *x.frame(m.device)}
	moved := m.conn != "" && y.Live() && (len(x.Conns) == 0 || m.conn != x.Conns[0])
	if moved {
		y.associate(m.conn, m.connAt, d.core.Front().Gone)
	}
	out.taken = y.Request == Delivered && (x.Request != Delivered || out.again)
	s := &step{before: x, after: y, kind: m.Kind}
	if accepted {
		y.Sizes[m.Kind] = int64(len(m.payload))
		s.payload, out.payload = m.payload, m.payload
	}
	switch {
	case m.device:
	case m.resume:
		y.Heard = x.Heard || y.Live()
	case accepted || moved:
		y.Heard = false
	}
	if verdict == Repeated && (moved || m.resume) {
		out.remind = out.again || y.remind(m.self)
	}
	if changed || moved {
		*y.frame(m.device) = m.frame
	}
	if y.Live() && (changed || m.resume) {
		y.Deadline = now.Add(lim.ExchangeTTL)
	}
	if x.Live() && !y.Live() {
		y.Ended = now
	}
	y.settle()
	if !now.Before(y.keepUntil(lim)) {
		out.x = x
		return out, nil // forgotten, but for the second to which the table rounds
	}
	if !changed && !x.stale && !moved && y.Reminded == x.Reminded && y.Heard == x.Heard && y.Deadline.Equal(x.Deadline) {
		out.x = x
		return out, nil
	}
	return out, s
}

// begin accepts the first request of an exchange.
func (d *Dialect) begin(ctx context.Context, h deviceKeys, m move, client *clientRecord, holds []table.Op) (outcome, error) {
	if client == nil {
		client = m.pairing.client(m.Client)
	}
	if client == nil || (client.State != stateActive && client.State != statePending) {
		return outcome{}, &fault{code: codeClientInactive, message: "the client is not active"}
	}
	u, err := d.mayBegin(ctx, h, m, client)
	if err != nil {
		return outcome{}, err
	}
	if d.full(u, client, 1, int64(len(m.payload)), m.pairing != nil) {
		return outcome{}, errFull
	}
	now := d.core.Now()
	x := &record{
		Exchange: Begun(), ID: m.Request, Client: m.Client,
		Seq: u.Seq + 1, Sizes: map[kind]int64{request: int64(len(m.payload))},
		Conns: []gateway.Conn{m.conn}, ConnAt: m.connAt, ClientFrame: m.frame, Deadline: now.Add(d.lim().ExchangeTTL),
	}
	if m.pairing != nil {
		x.Address = m.pairing.Address
	}
	s := &step{
		deviceKeys: h, after: x, client: client, begins: &u, pairing: u.pairing, attempt: holds,
		kind: request, payload: m.payload,
	}
	if err := d.write(ctx, s); err != nil {
		return outcome{}, err
	}
	return outcome{x: x, verdict: Changed, payload: m.payload}, nil
}

// mayBegin checks the id of a new exchange and the rates, and returns the counters of
// the device.
func (d *Dialect) mayBegin(ctx context.Context, h deviceKeys, m move, client *clientRecord) (usage, error) {
	now, lim := d.core.Now(), d.lim()
	if !fresh(m.Request, now) {
		return usage{}, &fault{code: codeInvalidRequestID, message: "the time in the request id is too far from now"}
	}
	u, err := d.loadUsage(ctx, h)
	if err != nil {
		return usage{}, err
	}
	ofClient, ofDevice := client.usage, u
	if wait := ofClient.begin(now, lim.ClientExchangesPerMinute); wait > 0 {
		return usage{}, &fault{codeRateLimited, "the client created too many new exchanges", wait}
	}
	begin := ofDevice.begin
	if m.pairing != nil {
		begin = ofDevice.beginPairing
	}
	if wait := begin(now, lim.DeviceExchangesPerMinute); wait > 0 {
		return usage{}, &fault{codeRateLimited, "the device was sent too many new exchanges", wait}
	}
	return u, nil
}

// useUp notes that an id is used, by a completion that came before its request or
// without one. Ids that are not fresh cannot be used anyway.
func (d *Dialect) useUp(ctx context.Context, h deviceKeys, m move, client *clientRecord, holds []table.Op) (outcome, error) {
	if !fresh(m.Request, d.core.Now()) {
		return outcome{verdict: Repeated}, nil
	}
	counting := client
	if counting == nil {
		counting = &clientRecord{ID: m.Client}
	}
	u, err := d.mayBegin(ctx, h, m, counting)
	if err != nil {
		return outcome{}, err
	}
	x := &record{ID: m.Request, Client: m.Client, ClientFrame: m.frame}
	if m.pairing != nil {
		x.Address = m.pairing.Address
	}
	s := &step{deviceKeys: h, after: x, client: client, begins: &u, pairing: u.pairing, attempt: holds}
	if err := d.write(ctx, s); err != nil {
		return outcome{}, err
	}
	return outcome{verdict: Repeated}, nil
}

// full reports whether there is no room for more; in the share of pairings, if it is
// about one.
func (d *Dialect) full(u usage, client *clientRecord, open, bytes int64, pairs bool) bool {
	lim := d.lim()
	over := func(have, more, limit int64) bool { return limit > 0 && more > 0 && have+more > limit }
	if over(u.Open, open, lim.DeviceOpenExchanges) || over(u.Bytes, bytes, lim.DeviceStoredBytes) {
		return true
	}
	if pairs && (over(u.PairOpen, open, share(lim.DeviceOpenExchanges, fewPairings)) ||
		over(u.PairBytes, bytes, share(lim.DeviceStoredBytes, MaxFrame))) {
		return true
	}
	return client != nil &&
		(over(client.Open, open, lim.ClientOpenExchanges) || over(client.Bytes, bytes, lim.ClientStoredBytes))
}
