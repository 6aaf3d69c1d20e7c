package aelos

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// A boat keeps its tags over several connections, and a frame that was posted to a
// lost connection may never have arrived. So the roster keeps a tag after the boat was
// told to forget it, and each new connection of the boat is told so again: bounded in
// number and in time. A boat that was away for longer goes by the count.

const (
	maxForgotten = 128            // the latest tags are kept
	forgetAfter  = 24 * time.Hour // after that a tag is no longer kept
)

// forgotten is a tag that the boat was told to forget, or would have been had it been
// connected.
type forgotten struct {
	Tag tag
	At  int64 // in seconds
}

// keptTags are forgotten tags, the oldest first. They are stored as bytes to save space.
type keptTags []forgotten

const keptSize = tagSize + 8

// MarshalJSON and UnmarshalJSON are for the roster.
func (k keptTags) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, len(k)*keptSize)
	for _, f := range k {
		b = append(b, f.Tag[:]...)
		b = binary.BigEndian.AppendUint64(b, uint64(f.At))
	}
	return json.Marshal(b)
}

func (k *keptTags) UnmarshalJSON(data []byte) error {
	var b []byte
	if err := json.Unmarshal(data, &b); err != nil {
		return err
	}
	if len(b)%keptSize != 0 {
		return errors.New("the kept tags are cut off")
	}
	*k = nil
	for one := range slices.Chunk(b, keptSize) {
		*k = append(*k, forgotten{tag(one), int64(binary.BigEndian.Uint64(one[tagSize:]))})
	}
	return nil
}

func (k keptTags) has(t tag) bool {
	return slices.ContainsFunc(k, func(f forgotten) bool { return f.Tag == t })
}

// keep has each new connection of the boat be told to forget these tags.
func (r *roster) keep(tags []tag, now time.Time) {
	for _, t := range tags {
		if !r.Forgotten.has(t) {
			r.Forgotten = append(r.Forgotten, forgotten{t, now.Unix()})
		}
	}
}

// trim prepares a roster for writing. When all peers have left, the tags that the boat
// was told of become forgotten ones. Both lists are cut to their bounds.
func (r *roster) trim(now time.Time) {
	if r.empty() {
		r.endLease()
		r.keep(r.Told, now)
		r.Told = nil
	}
	// The boat may be unreachable for long: bound the tags that it is still to be told
	// to forget.
	owed := 0
	for _, t := range r.Told {
		if r.byTag(t) == nil {
			owed++
		}
	}
	r.Told = slices.DeleteFunc(r.Told, func(t tag) bool {
		old := owed > maxForgotten && r.byTag(t) == nil
		if old {
			owed--
		}
		return old
	})
	r.Forgotten = slices.DeleteFunc(r.Forgotten, func(f forgotten) bool {
		return !now.Before(time.Unix(f.At, 0).Add(forgetAfter))
	})
	if n := len(r.Forgotten) - maxForgotten; n > 0 {
		r.Forgotten = slices.Delete(r.Forgotten, 0, n)
	}
}

// keptUntil is when the last forgotten tag need not be kept any longer.
func (r *roster) keptUntil() time.Time {
	var last int64
	for _, f := range r.Forgotten {
		last = max(last, f.At)
	}
	return time.Unix(last, 0).Add(forgetAfter)
}
