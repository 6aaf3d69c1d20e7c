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

// maxTries bounds how often a change is decided because another handler wrote first.
// Within one process that does not happen.
const maxTries = 32

// retry does what try does, again as long as its error is table.ErrCondition, because
// another handler wrote first.
func retry(what string, try func() error) error {
	for range maxTries {
		if err := try(); !errors.Is(err, table.ErrCondition) {
			return err
		}
	}
	return fmt.Errorf("failed to %s: %w", what, table.ErrBusy)
}

// move is what a frame asks of an exchange.
type move struct {
	scope
	event Event
	// resume asks for the state. It is no event, but counts as activity.
	resume bool
	// payload is that of a new message.
	payload []byte
	// conn is the connection on which a client publishes or resumes; connAt is when it
	// was opened.
	conn   gateway.Conn
	connAt time.Time
	// self is the device, for a frame of a client.
	self *relay.Member
	// frame is the id of the frame, by which a second delivery is found, see
	// relay.Conn.FrameID. device says that the device has sent it.
	frame  string
	device bool
	// pairing is the attempt of a connection for an initial pairing. If there is no client
	// record yet, it is made from the attempt.
	pairing *attempt
}

// outcome is the outcome of a move.
type outcome struct {
	// x is the exchange after the move, nil if there is none.
	x       *record
	verdict Verdict
	// again says that the frame was handled before, perhaps not to its end: it gets the
	// same answer again.
	again bool
	// remind says that a message which the device has not acked is to be posted again: the
	// handler that has accepted the message may have died before it posted it.
	remind bool
	// taken says that this move shows that the device has the request, now or when it was
	// handled for the first time.
	taken bool
	// payload is that of the move, if it was accepted now.
	payload []byte
}

// apply carries out a move. A *fault is the answer to a move that is refused.
func (d *Dialect) apply(ctx context.Context, h deviceKeys, m move) (outcome, error) {
	counted := false
	for range maxTries {
		out, err := d.tryApply(ctx, h, m)
		switch {
		case errors.Is(err, table.ErrCondition):
			continue
		case errors.Is(err, errFull):
			if counted {
				return outcome{}, &fault{codeCapacityExceeded, "too much is waiting already", capacityRetry}
			}
			// The counters may include expired exchanges.
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
		// One transaction has created both, after the client was read.
		return outcome{}, table.ErrCondition
	case x == nil && m.event == RequestSent && !m.resume:
		return d.begin(ctx, h, m, client, holds)
	case x == nil && m.event == CompletionSent && !m.resume:
		return d.markUsed(ctx, h, m, client, holds)
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

// current takes the connection out of a move if the front says that it is gone. Frames of
// two connections come in any order, and a late frame of the older connection need not be
// answered there.
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

// foreign answers a move on an exchange of another client. This client has no such
// exchange, and cannot begin one with that id.
func foreign(m move) (outcome, error) {
	if m.event == RequestSent && !m.resume {
		return outcome{}, &fault{code: codeRequestIDConflict, message: "the request id belongs to another exchange"}
	}
	if m.event == CompletionSent && !m.resume {
		return outcome{verdict: Repeated}, nil
	}
	return outcome{verdict: verdictOfUnknown(m)}, nil
}

// verdictOfUnknown is the verdict on a move without an exchange.
func verdictOfUnknown(m move) Verdict {
	if !m.resume && (m.event == RequestTaken || m.event == ResponseTaken || m.event == CompletionTaken) {
		return Ignored
	}
	return Dead
}

// decide returns the outcome of a move and the step to write, nil if there is nothing to
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
		return out, nil // it has expired, and is there only because the table rounds to seconds
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

// mayBegin checks the id of a new exchange and the rates. It returns the counters of the
// device.
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

// markUsed notes that an id is used, by a completion that came before its request or
// without one. An id that is not fresh needs no note, because no exchange can begin with it.
func (d *Dialect) markUsed(ctx context.Context, h deviceKeys, m move, client *clientRecord, holds []table.Op) (outcome, error) {
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

// full reports whether a limit on what is stored is reached; for a pairing, its share of
// the limit counts too.
func (d *Dialect) full(u usage, client *clientRecord, open, bytes int64, pairs bool) bool {
	lim := d.lim()
	over := func(have, more, limit int64) bool { return limit > 0 && more > 0 && have+more > limit }
	if over(u.Open, open, lim.DeviceOpenExchanges) || over(u.Bytes, bytes, lim.DeviceStoredBytes) {
		return true
	}
	if pairs && (over(u.PairOpen, open, share(lim.DeviceOpenExchanges, minPairings)) ||
		over(u.PairBytes, bytes, share(lim.DeviceStoredBytes, MaxFrame))) {
		return true
	}
	return client != nil &&
		(over(client.Open, open, lim.ClientOpenExchanges) || over(client.Bytes, bytes, lim.ClientStoredBytes))
}
