package sim

import (
	"encoding/binary"
	"encoding/hex"

	wire "blindpost/shared/client/aelos"
	"blindpost/shared/dialect/aelos"
	"blindpost/shared/gateway"
	"blindpost/shared/proof/engine"
)

// Posted judges each frame at the moment at which it is posted.
func (w *world) Posted(t *engine.Task, k *engine.Socket, m gateway.Message, taken bool) {
	if k == nil {
		w.e.Violate(propFrames, "%v posts to a connection that was never there", t)
		return
	}
	if !taken {
		return
	}
	l := lineOf(k)
	l.posts++
	if !m.Text {
		w.postedPayload(t, l, m.Data)
		return
	}
	c, err := wire.ParseControl(m.Data)
	if err != nil {
		w.e.Violate(propFrames, "%v posts %s to %v: %v", t, m.Data, l, err)
		return
	}
	switch c := c.(type) {
	case wire.Welcome:
		if !l.greeted {
			l.greeted, l.admitted = true, w.e.Step
		}
		return
	case wire.Error:
		w.checkError(t, l, c)
		return
	}
	if !l.greeted {
		w.e.Violate(propFrames, "%v posts %s to %v before welcome", t, m.Data, l)
	}
	switch c := c.(type) {
	case wire.Viewers:
		w.postedViewers(t, l, c)
	case wire.BoatStatus:
		w.postedStatus(t, l, c)
	case wire.Hs1:
		w.postedToBoat(t, l, c.VS, c.E)
	case wire.Hs2:
		if c.S != "s" {
			w.e.Violate(propFrames, "%v posts %s to %v", t, m.Data, l)
		}
		w.postedToViewer(t, l, c.VS, c.E)
	case wire.Result:
		l.answers["result"]++
		if !l.of.viewer || (c.StatusCode != 429 && c.StatusCode != 503) {
			w.e.Violate(propFrames, "%v posts %s to %v", t, m.Data, l)
		}
	case wire.Pong:
	default:
		w.e.Violate(propFrames, "%v posts %s to %v", t, m.Data, l)
	}
}

// unsure says that what a handler has told may have come late, or be told again.
func (w *world) unsure() bool { return w.slow || w.e.Troubled(quickEnough) }

// postedViewers: what the boat knows adds up, and is about its own viewers.
func (w *world) postedViewers(t *engine.Task, l *line, c wire.Viewers) {
	if l.of.viewer {
		w.e.Violate(propOthers, "%v tells %v about viewers", t, l)
		return
	}
	l.posted.take(c)
	// Who is held up in the middle of it may say something old after something new; then
	// the truth is told once more, see finish.go.
	if len(l.posted.tags) != c.Count && !w.unsure() {
		w.e.Violate(propPicture, "%v tells %v a count of %d, and its deltas come to %v", t, l, c.Count, l.posted.tags)
	}
	if c.Count > maxViewers {
		w.e.Violate(propViewers, "%v tells %v a count of %d", t, l, c.Count)
	}
	for _, tag := range c.Detach {
		l.forgets[tag] = w.e.Step
	}
	for _, tag := range c.Attach {
		v := w.line(w.store.connOf[tag])
		if v == nil || v.of.boat != l.of.boat {
			w.e.Violate(propOthers, "%v tells %v about the tag %s, which is of %v", t, l, tag, v)
			continue
		}
		if !v.greeted {
			w.e.Violate(propFrames, "%v tells %v about %v, which was not welcomed", t, l, v)
		}
	}
}

// postedStatus: a viewer is not told the same twice, unless somebody may have been too
// slow to be sure; so it does not hear of a boat that has only another connection.
func (w *world) postedStatus(t *engine.Task, l *line, c wire.BoatStatus) {
	if !l.of.viewer {
		w.e.Violate(propOthers, "%v tells %v that a boat is there", t, l)
		return
	}
	if n := len(l.statuses); n > 0 && l.statuses[n-1] == c.Online && !w.unsure() {
		w.e.Violate(propTakeover, "%v tells %v twice that the boat is there: %t", t, l, c.Online)
	}
	l.statuses = append(l.statuses, c.Online)
}

// postedPayload takes a payload frame apart as its recipient would.
func (w *world) postedPayload(t *engine.Task, l *line, b []byte) {
	if !l.greeted {
		w.e.Violate(propFrames, "%v posts a payload to %v before welcome", t, l)
	}
	head := 9
	if !l.of.viewer {
		head = 13
	}
	if len(b) < head {
		w.e.Violate(propFrames, "%v posts %d bytes to %v", t, len(b), l)
		return
	}
	kind, text := b[0], string(b[head:])
	if n := binary.BigEndian.Uint64(b[head-8:]); n != counterOf(kind) {
		w.e.Violate(propFrames, "%v posts a payload of type %d to %v, with the counter %x", t, kind, l, n)
	}
	switch {
	case l.of.viewer && (kind == 1 || kind == 3):
		w.postedToViewer(t, l, "", text)
	case !l.of.viewer && (kind == 2 || kind == 4):
		if from, _, _, ok := w.readMark(text); ok && (!from.of.ctl || from.of.proto < 2) {
			w.e.Violate(propRole, "%v: %v, which is no controller, commands %v", t, from, l)
		}
		if l.of.proto < 2 {
			w.e.Violate(propRole, "%v: %v speaks version 1 and gets a command", t, l)
		}
		w.postedToBoat(t, l, hex.EncodeToString(b[1:5]), text)
	default:
		w.e.Violate(propFrames, "%v posts a payload of type %d to %v", t, kind, l)
	}
}

// postedToBoat is something of a viewer.
func (w *world) postedToBoat(t *engine.Task, l *line, tag, text string) {
	from, seq, _, ok := w.readMark(text)
	switch {
	case l.of.viewer || !ok:
		w.e.Violate(propFrames, "%v posts %q to %v", t, text, l)
		return
	case from.of.boat != l.of.boat || !from.of.viewer:
		w.e.Violate(propOthers, "%v posts something of %v to %v", t, from, l)
	case w.store.tagOf[from.sock.ID] != tag:
		w.e.Violate(propSender, "%v posts something of %v with the tag %s, it has %s", t, from, tag, w.store.tagOf[from.sock.ID])
	case !l.posted.tags[tag] && !w.underWay(t, l, tag) && !w.unsure():
		w.e.Violate(propPicture, "%v: %v hears from %s, and does not know it", t, l, tag)
	}
	w.checkOrder(t, l, from, seq, text)
}

// underWay says that a boat was told to forget a tag after a handler had begun that now
// passes on something of it. Two handlers do that at the same time, and nothing orders
// their posts; the boat drops what comes of a tag that it has forgotten. A handler that
// begins later has no such excuse.
func (w *world) underWay(t *engine.Task, l *line, tag string) bool {
	step, forgotten := l.forgets[tag]
	return forgotten && t.Start <= step
}

// postedToViewer is something of a boat.
func (w *world) postedToViewer(t *engine.Task, l *line, vs, text string) {
	from, seq, to, ok := w.readMark(text)
	own := w.store.tagOf[l.sock.ID]
	switch {
	case !l.of.viewer || !ok:
		w.e.Violate(propFrames, "%v posts %q to %v", t, text, l)
		return
	case from.of.boat != l.of.boat || from.of.viewer || to != own || (vs != "" && vs != own):
		w.e.Violate(propOthers, "%v posts something of %v for %s to %v, which is %s", t, from, to, l, own)
	}
	w.checkOrder(t, l, from, seq, text)
}

// checkOrder: between two connections nothing overtakes.
func (w *world) checkOrder(t *engine.Task, l, from *line, seq int, text string) {
	if last := l.last[from]; seq < last || seq == last && w.e.Plan.Mode == engine.OneProcess {
		w.e.Violate(propOrder, "%v posts number %d of %v to %v after number %d", t, seq, from, l, last)
	}
	l.last[from] = seq
	l.got[text] = true
}

// checkError: what is said was so at some moment while the handler ran.
func (w *world) checkError(t *engine.Task, l *line, c wire.Error) {
	b, s := l.of.boat, &w.store
	l.answers[c.Code]++
	switch c.Code {
	case "limit":
		if l.of.viewer && !s.of(b).full() && s.wasFull[b] < t.Start && l.posts == 1 {
			w.e.Violate(propAnswers, "%v tells %v that the boat is full, which has %d viewers", t, l, len(s.of(b).Viewers))
		}
	case "boat-offline":
		if away, known := s.wasAway[b]; s.of(b).Boat != nil && known && away < t.Start {
			w.e.Violate(propAnswers, "%v tells %v that the boat is not there, which is", t, l)
		}
	case "proto":
		late := (!l.greeted || t.Start <= l.admitted) && w.e.Now().Sub(l.dialed) >= aelos.DefaultLimits().HelloTimeout
		if !l.strange && !late {
			w.e.Violate(propAnswers, "%v finds fault with what %v has sent", t, l)
		}
	case "auth":
		if w.e.Now().Before(l.expires) {
			w.e.Violate(propAnswers, "%v refuses the good token of %v", t, l)
		}
	}
}
