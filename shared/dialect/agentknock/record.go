package agentknock

import (
	"fmt"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// Prefixes of the partitions of the dialect.
const (
	devicePartition  = "ak/"  // one generation of a device
	addressPartition = "aka/" // the device at an address
	attemptPartition = "akp/" // an admitted pairing attempt
	// SocketPartition is the prefix of the partitions that list the connections of
	// clients. They may live in a table that forgets them on restart, when the
	// connections are gone too.
	SocketPartition = "aks/"
)

// deviceKeys says where the data of one generation of a device is stored.
type deviceKeys struct {
	device     string
	generation string
}

func (h deviceKeys) partition() string { return devicePartition + h.device + "/" + h.generation }
func (h deviceKeys) group() string     { return groupOf(h.device) }

func (h deviceKeys) key(sort string) table.Key {
	return table.Key{Partition: h.partition(), Sort: sort}
}

const (
	countersSort = "n"
	clientSort   = "c/"
	exchangeSort = "e/"
	openSort     = "o/"
	payloadSort  = "p/"
)

func (h deviceKeys) clientKey(client string) table.Key { return h.key(clientSort + client) }
func (h deviceKeys) exchangeKey(id string) table.Key   { return h.key(exchangeSort + id) }
func (h deviceKeys) openKey(seq int64) table.Key       { return h.key(openSort + seqSort(seq)) }

func seqSort(seq int64) string { return fmt.Sprintf("%016x", seq) }

func (h deviceKeys) payloadKey(id string, k kind) table.Key {
	return h.key(payloadSort + id + "/" + string(k))
}

// record is an exchange as it is stored.
type record struct {
	Exchange
	ID      string
	Client  string
	Address string // of an initial pairing, else ""
	// Seq is its place in the order of acceptance. Version counts its changes, from 0.
	Seq     int64
	Version int64
	// Sizes are the sizes of the stored payloads.
	Sizes map[kind]int64
	// Conns are the connections of the client that have published or resumed it, the
	// last one first; at most maxConns. ConnAt is when the youngest of them was opened.
	Conns  []gateway.Conn
	ConnAt time.Time
	// Reminded says which message was last posted to the device again, and on which
	// connection, see remind; 0 if none was.
	Reminded int64
	// Heard says that the client has asked for the state since it sent its last message,
	// so it needs no ack to know that this was accepted.
	Heard bool
	// ClientFrame and DeviceFrame are the ids of the frames of either side that have changed
	// it last, see relay.Conn.FrameID. The frames of one connection come in order, so only
	// the last one can be delivered again.
	ClientFrame, DeviceFrame string
	// Deadline is when a live exchange expires; Ended is when it was settled or expired.
	Deadline time.Time
	Ended    time.Time

	// counted says that a recount would count it. It does not count an exchange after its
	// deadline, because the entry in the order of acceptance has expired.
	counted bool
	// stale says that the exchange has expired since the item was written.
	stale bool
}

// kinds are all kinds in their order.
var kinds = [...]kind{request, response, completion}

// of is the state of a message.
func (x Exchange) of(k kind) Delivery {
	switch k {
	case request:
		return x.Request
	case response:
		return x.Response
	default:
		return x.Completion
	}
}

// frame is the id of the frame of one side that has changed the exchange last.
func (x *record) frame(device bool) *string {
	if device {
		return &x.DeviceFrame
	}
	return &x.ClientFrame
}

// bytes is the size of all stored payloads.
func (x *record) bytes() (n int64) {
	for _, size := range x.Sizes {
		n += size
	}
	return n
}

func (x *record) scope(k kind) scope { return scope{Client: x.Client, Request: x.ID, Kind: k} }

// sizeAttr names the attribute of a payload's size.
func sizeAttr(k kind) string { return "z." + string(k) }

func (x *record) attrs() table.Attrs {
	a := table.Attrs{
		"c":  table.String(x.Client),
		"q":  table.Number(x.Seq),
		"v":  table.Number(x.Version),
		"ph": table.Number(int64(x.Phase)),
		"rq": table.Number(int64(x.Request)),
		"rs": table.Number(int64(x.Response)),
		"cp": table.Number(int64(x.Completion)),
	}
	for k, size := range x.Sizes {
		a[sizeAttr(k)] = table.Number(size)
	}
	for i, c := range x.Conns {
		a[connAttrs[i]] = table.String(string(c))
	}
	if x.Heard {
		a["hd"] = table.Number(1)
	}
	if x.Reminded != 0 {
		a["rm"] = table.Number(x.Reminded)
	}
	for name, text := range map[string]string{"ad": x.Address, "fc": x.ClientFrame, "fd": x.DeviceFrame} {
		if text != "" {
			a[name] = table.String(text)
		}
	}
	for name, at := range map[string]time.Time{"ca": x.ConnAt, "dl": x.Deadline, "en": x.Ended} {
		if !at.IsZero() {
			a[name] = table.Number(at.UnixMilli())
		}
	}
	return a
}

func recordFrom(id string, a table.Attrs) *record {
	x := &record{
		Exchange: Exchange{
			Phase:      Phase(a["ph"].Num()),
			Request:    Delivery(a["rq"].Num()),
			Response:   Delivery(a["rs"].Num()),
			Completion: Delivery(a["cp"].Num()),
		},
		ID: id, Client: a["c"].Str(), Address: a["ad"].Str(),
		Seq: a["q"].Num(), Version: a["v"].Num(),
		Sizes:  make(map[kind]int64),
		ConnAt: timeFrom(a["ca"]), Reminded: a["rm"].Num(), Heard: a["hd"].Num() == 1,
		ClientFrame: a["fc"].Str(), DeviceFrame: a["fd"].Str(),
		Deadline: timeFrom(a["dl"]), Ended: timeFrom(a["en"]),
	}
	for _, k := range kinds {
		if v, ok := a[sizeAttr(k)]; ok {
			x.Sizes[k] = v.Num()
		}
	}
	for _, name := range connAttrs {
		if v, ok := a[name]; ok {
			x.Conns = append(x.Conns, gateway.Conn(v.Str()))
		}
	}
	x.counted = x.Live()
	return x
}

func timeFrom(v table.Value) time.Time {
	if v.Kind() == 0 {
		return time.Time{}
	}
	return time.UnixMilli(v.Num())
}

// age brings a stored exchange up to date: since it was written it may have expired, by its
// deadline or because its client was revoked, and its state may have been forgotten.
func (x *record) age(now time.Time, revoked bool, lim *Limits) {
	if x.Live() && (revoked || !now.Before(x.Deadline)) {
		x.counted = now.Before(x.Deadline)
		x.Exchange, _ = x.Next(End)
		x.Ended, x.stale = x.Deadline, true
		if now.Before(x.Deadline) {
			x.Ended = now
		}
	}
	if !x.Live() && x.Phase != Void && !now.Before(x.Ended.Add(lim.RecoveryTTL)) {
		x.Exchange, _ = x.Next(Forget)
	}
}

// keepUntil is when the item may expire: the state can no longer be asked for, and the id
// is too old for a new exchange.
func (x *record) keepUntil(lim *Limits) time.Time {
	end := x.Ended
	if x.Live() {
		end = x.Deadline
	}
	if end = end.Add(lim.RecoveryTTL); end.Before(usedUntil(x.ID)) {
		return usedUntil(x.ID)
	}
	return end
}

// openAttrs is the entry of a live exchange in the order of acceptance.
func (x *record) openAttrs() table.Attrs {
	waits := func(d Delivery) table.Value {
		if d == Accepted {
			return table.Number(1)
		}
		return table.Number(0)
	}
	return table.Attrs{
		"x": table.String(x.ID), "c": table.String(x.Client), "b": table.Number(x.bytes()),
		"dl": table.Number(x.Deadline.UnixMilli()),
		"a":  table.String(x.Address), string(request): waits(x.Request), string(completion): waits(x.Completion),
	}
}

// entry is an item of the order of acceptance.
type entry struct {
	sort, id, client    string
	address             string
	bytes               int64
	request, completion bool // whether it waits for the device
	// deadline is that of the exchange. The item stays up to a second longer.
	deadline time.Time
}

// ackTime is how long a handler may take from accepting a message to posting its ack,
// including the second run of one that has died.
const ackTime = time.Minute

// isFresh reports whether a message may have been accepted within ackTime.
func (e entry) isFresh(now time.Time, lim *Limits) bool {
	return now.Sub(e.deadline.Add(-lim.ExchangeTTL)) < ackTime
}

func entryFrom(it table.Item) entry {
	a := it.Attrs
	deadline := it.Expires
	if v, ok := a["dl"]; ok {
		deadline = timeFrom(v)
	}
	return entry{
		sort: it.Key.Sort, id: a["x"].Str(), client: a["c"].Str(), bytes: a["b"].Num(),
		address: a["a"].Str(), deadline: deadline,
		request: a[string(request)].Num() == 1, completion: a[string(completion)].Num() == 1,
	}
}

// live reports whether the exchange has not expired.
func (e entry) live(now time.Time) bool { return now.Before(e.deadline) }

// waits reports whether a message of the exchange waits for the device.
func (e entry) waits(now time.Time) bool { return e.live(now) && (e.request || e.completion) }
