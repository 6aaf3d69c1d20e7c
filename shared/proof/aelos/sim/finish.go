package sim

import (
	"strings"
	"time"

	wire "blindpost/shared/client/aelos"
	"blindpost/shared/dialect/aelos"
)

// Finish lets the world come to rest, holds what everybody believes against what is so,
// has everybody come back and talk, and lets all leave.
func (w *world) Finish() {
	w.e.Rest(25 * time.Minute) // the sweeper has been by
	if w.e.Failed() {
		return
	}
	w.checkBeliefs()
	w.diligent = true
	for range 3 {
		for _, p := range w.ends() {
			l := p.newest()
			if l != nil && !l.stays() {
				l.sock.HangUp()
			}
			if l == nil || !l.stays() {
				p.dial()
			}
		}
		w.e.Rest(20 * time.Second)
	}
	if w.e.Failed() {
		return
	}
	w.checkBeliefs()
	w.checkSessions()
	w.checkWithoutBoats()
	for _, k := range w.e.Sockets() {
		if k.Attached() {
			k.HangUp()
		}
	}
	w.e.Rest(25 * time.Minute)
	w.e.Pass(25 * time.Hour) // what boats may still remember is remembered for a while
	w.e.Rest(time.Minute)
	for partition := range w.store.boats {
		if left := w.e.PeekAll(partition, ""); len(left) > 0 && !w.e.Failed() {
			w.e.Violate(propEnd, "of %s is left: %s", strings.TrimPrefix(partition, aelos.Partition), left[0].Attrs["r"].Raw())
		}
	}
}

// stays says that a connection has said hello, and that neither its token nor its front
// ends it before the sessions have been looked at: that would be right, and not at rest.
func (l *line) stays() bool {
	const looked = 5 * time.Minute
	return l.said && l.world.e.Now().Add(looked).Before(l.expires) && !l.sock.Lapses(looked)
}

// checkBeliefs: a boat knows its viewers, and each viewer whether its boat is there;
// nobody is there whose token has expired.
func (w *world) checkBeliefs() {
	for _, p := range w.ends() {
		for _, l := range p.lines {
			if l.open() && l.welcomed && !w.e.Now().Before(l.expires) {
				w.e.Violate(propTokens, "the token of %v has expired at %v", l, l.expires)
			}
		}
	}
	for _, b := range w.boats {
		boat := b.settled()
		there := map[string]bool{}
		for _, v := range b.viewers {
			for _, l := range v.lines {
				if !l.open() || !l.welcomed {
					continue
				}
				there[w.store.tagOf[l.sock.ID]] = true
				if l.online != (boat != nil) {
					w.e.Violate(propStatus, "%v believes that its boat is there: %t, and it is %v", l, l.online, boat)
				}
			}
		}
		if len(there) > maxViewers {
			w.e.Violate(propViewers, "%v has %d viewers", b, len(there))
		}
		if boat == nil {
			continue
		}
		if boat.picture.count != len(there) || len(boat.picture.tags) != len(there) {
			w.e.Violate(propPicture, "%v believes in %d viewers, %v, there are %v", boat, boat.picture.count, boat.picture.tags, there)
		}
		for t := range there {
			if !boat.picture.tags[t] {
				w.e.Violate(propPicture, "%v does not know of %s", boat, t)
			}
		}
	}
}

// settled is the connection of a boat that was welcomed and not replaced.
func (b *boat) settled() *line {
	var last *line
	for _, l := range b.lines {
		if l.open() && l.welcomed {
			if last != nil {
				b.world.e.Violate(propPicture, "%v has two connections: %v and %v", b, last, l)
			}
			last = l
		}
	}
	return last
}

// checkSessions: everybody is there; who may says something, and it arrives.
func (w *world) checkSessions() {
	for _, b := range w.boats {
		boat := b.settled()
		if boat == nil {
			w.e.Violate(propSessions, "%v could not come back", b)
			continue
		}
		if n := len(boat.picture.tags); n != min(len(b.viewers), maxViewers) {
			w.e.Violate(propSessions, "%v has %d viewers of %d", boat, n, len(b.viewers))
		}
		sent := map[*line][]string{}
		refused := map[*line]int{} // how often each was before
		say := func(to, from *line, data func(mark string) []byte, text bool, name string) {
			m := from.mark(name)
			from.sock.Send(data(m), text)
			sent[to] = append(sent[to], m)
		}
		for _, v := range b.viewers {
			l := v.newest()
			if l == nil || !l.welcomed {
				continue
			}
			tag := w.store.tagOf[l.sock.ID]
			raw, err := wire.ParseTag(tag)
			if err != nil {
				w.e.Violate(propTags, "%v has the tag %q", l, tag)
				continue
			}
			say(boat, l, func(m string) []byte { return marshal(map[string]any{"t": "hs1", "vs": "", "e": m}) }, true, "boat")
			switch {
			case v.ctl && v.proto == 2 && b.proto == 2:
				say(boat, l, func(m string) []byte { return payload(2, nil, m) }, false, "boat")
				say(l, boat, func(m string) []byte { return payload(3, raw[:], m) }, false, tag)
			case v.proto == 2:
				l.sock.Send(payload(2, nil, l.mark("boat")), false)
				refused[l] = l.answers["result"]
			}
			say(l, boat, func(m string) []byte { return payload(1, raw[:], m) }, false, tag)
			say(l, boat, func(m string) []byte { return marshal(map[string]any{"t": "hs2", "vs": tag, "e": m, "s": "s"}) }, true, tag)
		}
		w.e.Rest(10 * time.Second)
		for to, marks := range sent {
			for _, m := range marks {
				if !to.got[m] && !w.e.Failed() {
					w.e.Violate(propSessions, "%v was not sent %q", to, m)
				}
			}
		}
		for l, before := range refused {
			if l.answers["result"] != before+1 {
				w.e.Violate(propAnswers, "%v may not command, and is not told so", l)
			}
		}
	}
}

// checkWithoutBoats: who shakes hands with a boat that is not there, or commands it, is
// told that it was not heard.
func (w *world) checkWithoutBoats() {
	if w.e.Failed() {
		return
	}
	for _, b := range w.boats {
		if l := b.newest(); l != nil {
			l.sock.HangUp()
		}
	}
	w.e.Rest(20 * time.Second)
	w.checkBeliefs()
	type count struct{ offline, result int }
	before := map[*line]count{}
	for _, b := range w.boats {
		for _, v := range b.viewers {
			if l := v.newest(); l != nil && l.welcomed {
				before[l] = count{l.answers["boat-offline"], l.answers["result"]}
				l.handshake()
				if v.proto == 2 {
					l.sock.Send(payload(2, nil, l.mark("boat")), false)
				}
			}
		}
	}
	w.e.Rest(10 * time.Second)
	for l, n := range before {
		if w.e.Failed() {
			return
		}
		if l.answers["boat-offline"] != n.offline+1 || l.of.proto == 2 && l.answers["result"] != n.result+1 {
			w.e.Violate(propAnswers, "%v is not told that its boat is not there", l)
		}
	}
}
