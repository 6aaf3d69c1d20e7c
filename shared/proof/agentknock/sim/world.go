package sim

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/gateway"
	"blindpost/shared/proof/engine"
	"blindpost/shared/push"
	"blindpost/shared/relay"
)

// The properties, as failures name them.
const (
	propStored    = "ack means stored"
	propFirst     = "the first accepted payload wins"
	propOrder     = "order"
	propStates    = "states of an exchange"
	propOthers    = "frames of another client"
	propRevoked   = "revoked means silent"
	propNewest    = "the newest device connection wins"
	propCaughtUp  = "caught_up comes last"
	propWake      = "a sleeping device is woken"
	propCounters  = "counters"
	propLost      = "nothing accepted is lost"
	propSecrets   = "secrets"
	propFrames    = "frames"
	propAdmission = "admission"
	propEnd       = "nothing stays behind"
)

// world is a schedule's.
type world struct {
	e       *engine.Engine
	plan    plan
	limits  agentknock.Limits
	made    []*agentknock.Dialect
	devices []*device
	clients []*client
	serial  int
	store   store
	deals   map[string]*deal // by request id
	order   []*deal
	// diligent peers do at once what the protocol wants of them.
	diligent bool
}

// plan is what a seed decides on top of the engine's plan.
type plan struct {
	devices, clients int
	deals            int
	large            bool
	changing         int // weight of what a device does to its clients and itself
	abort            int // permille of exchanges that are aborted
	odd              int // weight of frames at odds with the protocol
	lazy             int // permille: a device lets a message lie
}

var _ engine.World = (*world)(nil)

// World makes the world of one schedule.
func World(e *engine.Engine) engine.World {
	r := rand.New(rand.NewPCG(e.Seed, 0x6b6e6f636b))
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	w := &world{e: e, deals: make(map[string]*deal)}
	w.plan = plan{
		devices: pick(1, 1, 1, 2), clients: pick(1, 2, 2, 3), deals: pick(4, 10, 25),
		large: pick(0, 0, 0, 0, 0, 0, 0, 1) == 1, changing: pick(0, 0, 1, 2), abort: pick(0, 200, 500),
		odd: pick(0, 1, 2), lazy: pick(0, 100, 500),
	}
	l := agentknock.DefaultLimits()
	l.ClientOpenExchanges = int64(pick(2, 3, 8, 64))
	l.DeviceOpenExchanges = int64(pick(4, 8, 256))
	if pick(0, 0, 1) == 1 {
		l.ClientExchangesPerMinute = int64(pick(0, 3, 10))
		l.DeviceExchangesPerMinute = int64(pick(0, 5, 20))
	}
	if pick(0, 0, 0, 1) == 1 && !w.plan.large {
		l.ClientStoredBytes, l.DeviceStoredBytes = 1500, 4000
	}
	w.limits = l
	w.store.init(w)
	return w
}

func (w *world) Dialect(core *relay.Relay, pusher push.Sender) relay.Dialect {
	d := agentknock.New(core, agentknock.Options{Limits: w.limits, Pusher: pusher})
	w.made = append(w.made, d)
	return d
}

func (w *world) Volatile() []string { return []string{agentknock.SocketPartition} }

func (w *world) Groups() []string {
	var all []string
	for _, d := range w.devices {
		all = append(all, "agentknock/"+d.id)
	}
	return all
}

// line is what the model knows about a connection.
type line struct {
	device *device // of either
	client *client // nil for a device
	sock   *engine.Socket
	// pairing says that it is about the exchange of an initial pairing only.
	pairing bool
	// changes are those of the state of the client when it dialed.
	changes int

	sent    map[string]bool // messages that the client has sent on it
	resumed map[string]bool
	acked   map[string]bool
	posted  map[string]bool // messages that were posted
	snaps   map[string]peer.Snapshot
	ended   map[string]bool // exchanges that were called inactive
}

func newLine(d *device, c *client) *line {
	return &line{
		device: d, client: c,
		sent: map[string]bool{}, resumed: map[string]bool{}, acked: map[string]bool{},
		posted: map[string]bool{}, snaps: map[string]peer.Snapshot{}, ended: map[string]bool{},
	}
}

func lineOf(k *engine.Socket) *line { return k.Owner.(*line) }

// identity names a message.
func identity(f peer.Frame) string { return f.RequestID + "/" + f.Kind }

func (w *world) next() uint64 {
	w.serial++
	return uint64(w.serial)
}

// newID makes an id of a time, the same in each run of a seed.
func (w *world) newID(at time.Time) string {
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(at))
	binary.BigEndian.PutUint64(id[6:], w.next()*0x9e3779b97f4a7c15|1)
	return id.String()
}

// newToken makes a token, which must never be seen in a log.
func (w *world) newToken() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "TOKEN-%026d", w.next()))
}

// payloadMark is in all payloads and must never be seen in a log.
const payloadMark = "PAYLOAD-OF-THE-SIMULATION"

// newPayload makes one that is like no other, and that nobody who encodes JSON again
// would write in the same way.
func (w *world) newPayload() []byte {
	size := w.e.Rand.IntN(200)
	if w.plan.large {
		size = 150 << 10
	}
	return fmt.Appendf(nil, `{ "p":"%s %d", "x":1e2,"x":1, "pad":"%s"}`, payloadMark, w.next(), strings.Repeat("<", size))
}

func (w *world) Text(where, text string) {
	for _, secret := range []string{payloadMark, "VE9LRU4t", "TOKEN-", fidMark} {
		if strings.Contains(text, secret) {
			w.e.Violate(propSecrets, "a %s holds %s: %q", where, secret, text)
		}
	}
}

func (w *world) Describe(data []byte, _ bool) string {
	f, err := peer.Decode(data, peer.DeviceRole)
	if err != nil {
		f, err = peer.Decode(data, peer.ClientRole)
	}
	if err != nil {
		if len(data) > 300 {
			data = data[:300]
		}
		return string(data)
	}
	return f.String()
}

func (w *world) Received(k *engine.Socket, f engine.Frame) {
	l := lineOf(k)
	role := peer.ClientRole
	if l.client == nil {
		role = peer.DeviceRole
	}
	m, err := peer.Decode(f.Data, role)
	if err != nil || !f.Text {
		w.e.Violate(propFrames, "%v is sent %s: %v", k, f.Data, err)
		return
	}
	if l.client == nil {
		l.device.hears(l, m)
	} else {
		l.client.hears(l, m)
	}
}

func (w *world) Ended(k *engine.Socket) {
	l := lineOf(k)
	if l.client == nil {
		l.device.ended(l)
	} else {
		l.client.ended(l)
	}
}

func (w *world) Connected(k *engine.Socket, accepted bool, r gateway.ConnectResult) {
	l := lineOf(k)
	if l.client == nil {
		l.device.connected(l, accepted, r.Status)
	} else {
		l.client.connected(l, accepted, r.Status)
	}
}

func (w *world) Acts(add func(weight int, do func())) {
	for _, d := range w.devices {
		d.acts(add)
	}
	for _, c := range w.clients {
		c.acts(add)
	}
}

func (w *world) Crashed() {}

func (w *world) TaskEnded(*engine.Task) {}

// Begin makes devices with an address and clients; some clients have paired before.
func (w *world) Begin() {
	for i := range w.plan.devices {
		d := newDevice(w, i)
		w.devices = append(w.devices, d)
		d.call("claim", fmt.Sprintf(`{"device_token":%q}`, d.token))
		w.e.Rest(time.Second)
		d.call("address", fmt.Sprintf(`{"address_id":%q}`, d.address))
		if i == 0 || w.e.Chance(500) {
			d.registerPush()
		}
		w.e.Rest(time.Second)
		for range w.plan.clients {
			w.clients = append(w.clients, newClient(w, d, len(w.clients)))
		}
	}
	if w.e.Chance(300) {
		return
	}
	w.diligent = true
	for _, d := range w.devices {
		d.dial()
	}
	for _, c := range w.clients {
		c.dial()
	}
	w.e.Rest(time.Minute)
	w.diligent = false
	for _, c := range w.clients {
		if !c.enrolled && !w.e.Failed() {
			w.e.Violate(propAdmission, "%v could not be paired in peace", c)
		}
	}
}
