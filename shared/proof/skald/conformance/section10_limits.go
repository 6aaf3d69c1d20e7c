package conformance

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

// The limits of section 10 as the specification sets them.
const (
	maxFrame          = 64 << 10
	maxLiveFrame      = 512 << 10
	mailboxCap        = 200
	messagesPerMinute = 60
	connectionsPerIP  = 30
)

// muchFrame is far beyond every limit.
const muchFrame = 4 << 20

var section10 = []story{
	{Name: "Section10_FrameBeforeAuth", Tell: section10PreAuth, Needs: carries(maxFrame + 1)},
	{Name: "Section10_LiveSizeBeforeAuth", Tell: preAuthFlood(maxLiveFrame), Needs: carries(maxLiveFrame)},
	{Name: "Section10_MuchBeforeAuth", Tell: preAuthFlood(muchFrame), Needs: carries(muchFrame)},
	{Name: "Section10_StoredFrame", Tell: section10Stored, Needs: carries(maxFrame + 1)},
	{Name: "Section10_LiveFrame", Tell: section10Live, Needs: carries(maxLiveFrame + 1)},
	{Name: "Section10_OnlyLiveMessagesMayBeLong", Tell: section10OnlyLive, Needs: carries(maxFrame + 1)},
	{Name: "Section10_NoStoredMessageOfLiveSize", Tell: section10StoredLong, Needs: carries(maxLiveFrame)},
	{Name: "Section10_LimitsAreSettings", Tell: section10Settings,
		Own: &Settings{MessagesPerMinute: plenty, ConnectionsPerIP: plenty, MailboxCap: 3, MaxFrame: 4 << 10, MaxLiveFrame: 8 << 10}},
	{Name: "Section10_QueueFull", Tell: section10QueueFull},
	{Name: "Section10_MessagesPerConnection", Tell: section10Messages, Own: &Settings{ConnectionsPerIP: plenty}},
	{Name: "Section10_ConnectionsPerIP", Tell: section10Connections, Own: &Settings{}},
	{Name: "Section10_ConnectionsPerIPAreEachTheirOwn", Tell: section10OtherIP, Own: &Settings{}, Needs: addresses},
}

// paddedAuth is an Auth of an agent whose frame has exactly size bytes, thanks
// to a field that the relay does not know and has to skip.
func paddedAuth(t *testing.T, p *peer, id *identity, size int) []byte {
	t.Helper()
	auth := id.authAgent()
	auth.Signature = id.sign(p.nonce)
	data, err := proto.Marshal(frameAuth(auth))
	if err != nil {
		t.Fatal(err)
	}
	padding := size - len(data) - 5 // tag 2 bytes, length 3 bytes
	if padding < 1<<14 || padding >= 1<<21 {
		t.Fatalf("no padding of %d bytes", padding)
	}
	data = append(data, 0xa2, 0x06, byte(padding)|0x80, byte(padding>>7)|0x80, byte(padding>>14))
	return append(data, make([]byte, padding)...)
}

// 64 KiB before authentication, to the byte.
func section10PreAuth(t *testing.T, r *relay) {
	h := r.home(t)
	p := r.stranger(t)
	data := paddedAuth(t, p, h.agent, maxFrame)
	p.sendRaw(data)
	p.wantAuthOk(h.ns)

	t.Run("one more", func(t *testing.T) { h.refuseBeforeAuth(t, maxFrame+1) })
	t.Run("good Auth, one more", func(t *testing.T) {
		p := r.stranger(t)
		p.sendRaw(paddedAuth(t, p, newIdentity(r, "agent"), maxFrame+1))
		p.wantRefusal("payload_too_large")
	})
	p.wantNothing()
}

// Nothing longer either, and nobody else is touched.
func preAuthFlood(size int) func(t *testing.T, r *relay) {
	return func(t *testing.T, r *relay) {
		h := r.home(t)
		agent := h.dialAgent()
		h.refuseBeforeAuth(t, size)
		agent.wantNothing()
	}
}

// refuseBeforeAuth sends a frame that is too long for a stranger.
func (h *home) refuseBeforeAuth(t *testing.T, size int) {
	t.Helper()
	p := h.r.stranger(t)
	// Not even a live message, which is allowed that size later.
	f, err := proto.Marshal(h.r.liveParcel("flood").grown(size).to(h.agent.key))
	if err != nil {
		t.Fatal(err)
	}
	p.sendRaw(f)
	p.wantRefusal("payload_too_large")
}

// 64 KiB for a stored message, to the byte, straight and by way of the queue.
func section10Stored(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	whole := r.parcel("exactly 64 KiB").grown(maxFrame)
	agent.send(whole.to(ph.key))
	p.wantMessage(h.agent, whole)
	p.wantConfirmed()
	ph.leave(p, agent)
	agent.send(whole.to(ph.key))
	agent.wantNothing()
	p = ph.dialSeen(agent)
	p.wantMessage(h.agent, whole)
	p.wantConfirmed()

	agent.send(r.parcel("one more").grown(maxFrame + 1).to(ph.key))
	agent.wantError("payload_too_large")
	agent.wantStaysOrGoes()
	p.wantPresenceAbout(agent)
}

// 512 KiB for a live message, to the byte. Beyond that the frame need not even
// be read to its end.
func section10Live(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	for _, size := range []int{maxFrame + 1, maxLiveFrame} {
		m := r.liveParcel("%d bytes", size).grown(size)
		agent.send(m.to(ph.key))
		p.wantMessage(h.agent, m)
		p.send(m.to(h.agent.key))
		agent.wantMessage(ph.identity, m)
	}
	agent.wantNothing()
	data, err := proto.Marshal(r.liveParcel("one more").grown(maxLiveFrame + 1).to(ph.key))
	if err != nil {
		t.Fatal(err)
	}
	agent.sendRaw(data)
	agent.wantError("payload_too_large")
	agent.wantStaysOrGoes()
	p.wantPresenceAbout(agent)
}

// The larger limit is for live messages only, not for other frames.
func section10OnlyLive(t *testing.T, r *relay) {
	for name, frame := range map[string]*skaldpb.RelayFrame{
		"PairingStart": framePairingStart(randomBytes(maxFrame), 300),
		"Authorize":    frameAuthorize(randomBytes(maxFrame)),
	} {
		t.Run(name, func(t *testing.T) { r.home(t).refuseTooLarge(t, frame) })
	}
}

func section10StoredLong(t *testing.T, r *relay) {
	r.home(t).refuseTooLarge(t, r.parcel("stored").grown(maxLiveFrame).to(randomBytes(32)))
}

func (h *home) refuseTooLarge(t *testing.T, frame *skaldpb.RelayFrame) {
	t.Helper()
	data, err := proto.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	agent := h.dialAgent()
	agent.sendRaw(data)
	agent.wantError("payload_too_large")
	agent.wantStaysOrGoes()
}

// The relay exposes the limits via config.
func section10Settings(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	ms := []parcel{r.parcel("small"), r.parcel("all that fits").grown(4 << 10), r.parcel("third")}
	for _, m := range ms {
		agent.send(m.to(ph.key))
	}
	agent.wantNothing()
	agent.send(r.parcel("fourth").to(ph.key))
	agent.wantError("queue_full")
	p := ph.dialSeen(agent)
	p.wantMessages(h.agent, ms...)
	live := r.liveParcel("live").grown(8 << 10)
	agent.send(live.to(ph.key))
	p.wantMessage(h.agent, live)
	p.send(r.parcel("too long").grown(4<<10 + 1).to(h.agent.key))
	p.wantError("payload_too_large")
	p.wantStaysOrGoes()
}

// 200 stored messages for each recipient; the next is refused until the queue
// is drained, and the refusal costs nothing else.
func section10QueueFull(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 2)
	ph, other := all[0], all[1]
	ms := r.parcels(mailboxCap)
	for _, m := range ms {
		agent.send(m.to(ph.key))
	}
	agent.wantNothing()
	for range 3 {
		agent.send(r.parcel("too many").to(ph.key))
		agent.wantError("queue_full")
	}
	elsewhere := r.parcel("elsewhere")
	agent.send(elsewhere.to(other.key))
	agent.wantNothing()
	q := other.dialSeen(agent)
	q.wantMessage(h.agent, elsewhere)

	p := ph.dialSeen(agent, q)
	p.wantMessages(h.agent, ms...)
	p.wantConfirmed()
	ph.leave(p, agent, q)
	again := r.parcels(mailboxCap)
	for _, m := range again {
		agent.send(m.to(ph.key))
	}
	agent.wantNothing()
	agent.send(r.parcel("too many").to(ph.key))
	agent.wantError("queue_full")
	ph.dialSeen(agent, q).wantMessages(h.agent, again...)
}

// 60 messages per minute and connection. A budget that refills by the second is
// as good as one that refills by the minute.
func section10Messages(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	p := ph.dial()
	agent.wantOnline(ph.identity)
	since := time.Now()
	const sent = messagesPerMinute + 20
	ms := r.parcels(sent)
	for i := range ms {
		ms[i].live = i%2 == 0
		if p.post(ms[i].to(h.agent.key)) != nil {
			break // the relay may hang up on a flooder
		}
	}
	agent.wantMessages(ph.identity, ms[:messagesPerMinute]...)
	p.wantError("rate_limited")
	got := 0
	for {
		e, err := agent.next(300 * time.Millisecond)
		if err != nil {
			break
		}
		if e.frame.GetMessage() != nil {
			got++
		}
	}
	if seconds := int(time.Since(since)/time.Second) + 1; got > seconds {
		t.Errorf("%d messages within %d s", messagesPerMinute+got, seconds)
	}
	// The limit is the connection's own.
	p = ph.dial()
	m := r.parcel("new connection")
	p.send(m.to(h.agent.key))
	f := agent.want("the message")
	for f.GetPresenceEvent() != nil { // if the relay hung up, the phone was away
		f = agent.want("the message")
	}
	if string(f.GetMessage().GetCiphertext()) != string(m.ciphertext) {
		agent.instead("the message", f)
	}
}

// 30 new connections per minute and IP. The next is refused at the upgrade,
// with a hint when to come back; who is in stays in.
func section10Connections(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	accepted := 1
	for accepted <= connectionsPerIP+3 {
		p, resp, err := r.call(t, "caller", line{})
		if err != nil {
			wantTooMany(t, resp)
			break
		}
		accepted++
		p.drop()
	}
	if accepted < connectionsPerIP || accepted > connectionsPerIP+2 {
		t.Errorf("%d connections were accepted", accepted)
	}
	agent.wantPresence(h.agent)
	if r.NoHTTP {
		return
	}
	// Health checks are no connections.
	if status := r.get(t, "/healthz"); status != http.StatusOK {
		t.Errorf("healthz answers %d", status)
	}
}

func wantTooMany(t *testing.T, resp *http.Response) {
	t.Helper()
	if resp == nil {
		t.Fatal("the connection is refused without an HTTP answer")
	}
	if resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("refused with %s", resp.Status)
	}
	if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
		t.Errorf("Retry-After: %q", resp.Header.Get("Retry-After"))
	}
}

// One flooder does not lock out other addresses.
func section10OtherIP(t *testing.T, r *relay) {
	for range connectionsPerIP + 10 {
		if p, _, err := r.call(t, "flooder", line{}); err == nil {
			p.drop()
		}
	}
	if _, resp, err := r.call(t, "flooder", line{}); err == nil {
		t.Error("the flooder is still let in")
	} else {
		wantTooMany(t, resp)
	}
	h := r.home(t)
	h.dialAgent(line{from: "127.0.0.2"}).wantPresence(h.agent)
}
