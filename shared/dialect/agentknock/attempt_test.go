package agentknock

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
	twotables "blindpost/shared/table/route"
)

// An attempt that has been forgotten cannot go on, on whatever old connection, when
// another one has its id.
func TestAttemptOfAnother(t *testing.T) {
	x := &stageDeal{pairing: true}
	c := newCast(t, true, x)
	device := c.dial(c.device.path, c.device.token)
	c.settle()
	first := c.dial(c.client.path, c.client.token)
	c.now = c.now.Add(DefaultLimits().PairingTTL + time.Second)
	second := c.dial(c.client.path, peer.NewToken())
	c.frame(first, string(x.frame(peer.Message, peer.Request).Encode()))
	if got := c.last(first); !strings.Contains(got, codeRequestIDConflict) || c.conns[first].code != gateway.ClosePolicy {
		t.Errorf("the first is told %s and closed with %d", got, c.conns[first].code)
	}
	c.frame(second, string(x.frame(peer.Message, peer.Request).Encode()))
	c.frame(device, string(x.frame(peer.Message, peer.Response).Encode()))
	if got := c.last(second); !strings.Contains(got, `"kind":"response"`) {
		t.Errorf("the second is told %s", got)
	}
}

// If both were admitted all the same, the client belongs to the one whose request has created
// it.
func TestClientOfAnotherToken(t *testing.T) {
	x := &stageDeal{pairing: true}
	c := newCast(t, true, x)
	c.dial(c.device.path, c.device.token)
	c.settle()
	first := c.dial(c.client.path, c.client.token)
	c.frame(first, string(x.frame(peer.Message, peer.Request).Encode()))
	m, err := c.relay.GetMember(t.Context(), groupOf(stageDevice), deviceMember)
	if err != nil {
		t.Fatal(err)
	}
	hash, _ := hashToken(peer.NewToken())
	key := deviceKeys{stageDevice, m.Generation}.clientKey(x.client)
	if _, err := c.durable.Write(t.Context(), table.Op{Action: table.Update, Key: key, Set: table.Attrs{"t": table.Bytes(hash)}}); err != nil {
		t.Fatal(err)
	}
	for _, f := range []peer.Frame{x.frame(peer.Resume, ""), x.frame(peer.Ack, peer.Response), x.frame(peer.Message, peer.Completion)} {
		conn := c.conns[first]
		conn.closed, conn.code, conn.inbox, c.ended = false, 0, nil, nil
		c.frame(first, string(f.Encode()))
		if got := c.last(first); !strings.Contains(got, codeRequestIDConflict) || conn.code != gateway.ClosePolicy {
			t.Errorf("%s is answered with %s and close %d", f, got, conn.code)
		}
	}
}

// An attempt that has expired can do nothing more on its connection either.
func TestAttemptThatIsOver(t *testing.T) {
	for want, f := range map[string]func(*stageDeal) peer.Frame{
		codeClientInactive: func(x *stageDeal) peer.Frame { return x.frame(peer.Message, peer.Request) },
		peer.Inactive:      func(x *stageDeal) peer.Frame { return x.frame(peer.Resume, "") },
		peer.Ack:           func(x *stageDeal) peer.Frame { return x.frame(peer.Message, peer.Completion) },
	} {
		x := &stageDeal{pairing: true}
		c := newCast(t, true, x)
		conn := c.dial(c.client.path, c.client.token)
		c.now = c.now.Add(DefaultLimits().PairingTTL + time.Second)
		c.frame(conn, string(f(x).Encode()))
		if got := c.last(conn); !strings.Contains(got, want) || c.conns[conn].code != gateway.ClosePolicy {
			t.Errorf("the client is told %s and closed with %d", got, c.conns[conn].code)
		}
	}
}

// A client that is pending is remembered as long as its exchange goes on.
func TestPendingClientStaysWithItsExchange(t *testing.T) {
	x := &stageDeal{pairing: true}
	c := newCast(t, true, x)
	device := c.dial(c.device.path, c.device.token)
	c.settle()
	client := c.dial(c.client.path, c.client.token)
	c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
	c.frame(device, string(x.frame(peer.Ack, peer.Request).Encode()))
	for range 30 { // fifteen days
		c.now = c.now.Add(12 * time.Hour)
		m, err := c.relay.GetMember(t.Context(), groupOf(stageDevice), deviceMember)
		if err != nil {
			t.Fatal(err)
		}
		s := &session{Device: stageDevice, Generation: m.Generation, Client: x.client}
		record, err := c.knock.loadClient(t.Context(), s.keys(), x.client)
		if err != nil || record == nil {
			t.Fatalf("after %v the client is forgotten: %v", c.now.Sub(stageStart), err)
		}
		mv := move{scope: scope{Client: x.client, Request: x.id}, resume: true, conn: client, connAt: c.now}
		if out, err := c.knock.apply(t.Context(), s.keys(), mv); err != nil || out.x == nil || !out.x.Live() {
			t.Fatalf("after %v a resume comes to %+v, %v", c.now.Sub(stageStart), out, err)
		}
	}
}

// betweenTable does something once before the next transaction.
type betweenTable struct {
	table.Table
	do *func()
}

func (t betweenTable) Transact(ctx context.Context, ops []table.Op) error {
	if do := *t.do; do != nil {
		*t.do = nil
		do()
	}
	return t.Table.Transact(ctx, ops)
}

// A device accepts, or revokes, a client while another process writes what its client
// did when it was pending. That process must not have it forgotten.
func TestStateThatChangesMeanwhile(t *testing.T) {
	for _, state := range []string{stateActive, stateRevoked} {
		for _, typ := range []string{peer.Ack, peer.Resume, peer.Message} {
			x := &stageDeal{pairing: true}
			c := newCast(t, true, x)
			device := c.dial(c.device.path, c.device.token)
			c.settle()
			client := c.dial(c.client.path, c.client.token)
			c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
			c.frame(device, string(x.frame(peer.Message, peer.Response).Encode()))
			c.now = c.now.Add(time.Second)
			between := func() {
				c.frame(device, string(peer.Frame{Type: peer.SetClientState, ClientID: x.client, State: state}.Encode()))
			}
			split := []string{relay.ConnPartition, relay.AddressPartition, SocketPartition}
			other := relay.New(relay.Options{
				Table: betweenTable{twotables.New(c.memory, split, c.durable), &between}, Queue: stageQueue{c.stage}, Front: stageFront{c.stage},
				Log: slog.New(slog.DiscardHandler), Now: c.clock, Random: rand.Reader, ConnRecordTTL: 3 * time.Hour,
				NewID: func() string { c.serial++; return fmt.Sprint("id", c.serial) },
			})
			other.Use(New(other, Options{Limits: DefaultLimits(), Pusher: stagePusher{c.stage}}))
			f := x.frame(typ, map[string]string{peer.Ack: peer.Response, peer.Message: peer.Completion}[typ])
			_, err := other.Frame(t.Context(), gateway.FrameEvent{Conn: client, Text: true, At: c.now, ID: "x1", Data: f.Encode()})
			if err != nil || between != nil {
				t.Fatalf("%s: %v", typ, err)
			}
			c.now = c.now.Add(30 * 24 * time.Hour)
			m, err := c.relay.GetMember(t.Context(), groupOf(stageDevice), deviceMember)
			if err != nil {
				t.Fatal(err)
			}
			record, err := c.knock.loadClient(t.Context(), deviceKeys{stageDevice, m.Generation}, x.client)
			if err != nil || record == nil || record.State != state {
				t.Errorf("%s while it becomes %s: after a month it is %+v, %v", typ, state, record, err)
			}
		}
	}
}

// A request that has expired is not sent and not counted, though the table keeps its item to
// the end of the second.
func TestExpiresToTheMillisecond(t *testing.T) {
	x, y := &stageDeal{}, &stageDeal{}
	c := newCast(t, true, x, y)
	lim := DefaultLimits()
	lim.ExchangeTTL, lim.ClientOpenExchanges = 2*time.Second, 1
	c.knock.SetLimits(lim)
	c.now = c.now.Add(10 * time.Millisecond)
	client := c.dial(c.client.path, c.client.token)
	c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
	pushes := len(c.pushes)
	c.jobs = nil
	c.now = c.now.Add(lim.ExchangeTTL)
	m, err := c.relay.GetMember(t.Context(), groupOf(stageDevice), deviceMember)
	if err != nil {
		t.Fatal(err)
	}
	if waits, err := c.knock.anythingWaits(t.Context(), deviceKeys{stageDevice, m.Generation}); err != nil || waits {
		t.Errorf("something waits: %t, %v", waits, err)
	}
	device := c.dial(c.device.path, c.device.token)
	c.settle()
	if n := c.count(device, peer.Request); n != 0 || len(c.pushes) != pushes {
		t.Errorf("the device is sent %s and %d pushes", c.conns[device].inbox, len(c.pushes)-pushes)
	}
	c.frame(client, string(y.frame(peer.Message, peer.Request).Encode()))
	if got := c.last(client); !strings.Contains(got, `"ack"`) {
		t.Errorf("the next request is answered with %s", got)
	}
}

// A client with two connections sends its request again on the older one, which is as
// healthy. It gets the receipt and the response there, and what is there already at once.
func TestRequestAgainOnAnOlderConnection(t *testing.T) {
	for _, functions := range []bool{false, true} {
		x := &stageDeal{}
		c := newCast(t, functions, x)
		device := c.dial(c.device.path, c.device.token)
		c.settle()
		older := c.dial(c.client.path, c.client.token)
		c.now = c.now.Add(time.Millisecond)
		newer := c.dial(c.client.path, c.client.token)
		request := string(x.frame(peer.Message, peer.Request).Encode())
		c.frame(newer, request)
		c.frame(older, request)
		c.frame(device, string(x.frame(peer.Ack, peer.Request).Encode()))
		if got := c.last(older); !strings.Contains(got, `"receipt"`) {
			t.Errorf("functions=%t: the older connection has %s", functions, got)
		}
		c.frame(device, string(x.frame(peer.Message, peer.Response).Encode()))
		for i := range 3 {
			if n := c.count(older, peer.Response); n != i+1 {
				t.Errorf("functions=%t: after %d requests more the older connection has %d responses", functions, i, n)
			}
			c.frame(older, request)
		}
		if n := c.count(newer, peer.Response); n != 1 {
			t.Errorf("functions=%t: the newer connection has %d responses", functions, n)
		}
	}
}

// At the very end of what is kept of an exchange nothing more is written: it would be a
// record that has expired.
func TestNothingIsWrittenOfWhatIsForgotten(t *testing.T) {
	x := &stageDeal{}
	c := newCast(t, true, x)
	lim := DefaultLimits()
	lim.ExchangeTTL, lim.RecoveryTTL = 36*time.Hour, 36*time.Hour
	c.knock.SetLimits(lim)
	c.now = c.now.Add(time.Microsecond)
	client := c.dial(c.client.path, c.client.token)
	c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
	c.now = c.now.Add(lim.ExchangeTTL + lim.RecoveryTTL)
	m, err := c.relay.GetMember(t.Context(), groupOf(stageDevice), deviceMember)
	if err != nil {
		t.Fatal(err)
	}
	h := deviceKeys{stageDevice, m.Generation}
	mv := move{scope: scope{Client: x.client, Request: x.id}, resume: true, conn: client, connAt: stageStart}
	if out, err := c.knock.apply(t.Context(), h, mv); err != nil || out.verdict != Dead {
		t.Errorf("a resume comes to %+v, %v", out, err)
	}
	if _, err := c.durable.Get(t.Context(), h.exchangeKey(x.id)); err != nil {
		t.Errorf("the exchange: %v", err)
	}
}
