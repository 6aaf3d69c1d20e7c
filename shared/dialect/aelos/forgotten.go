package aelos

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// A boat keeps what it knows over its connections, and a word that was posted into a
// connection which is lost may never have arrived. So a tag that the boat was told of
// is kept beyond the word that it is no more, for each new connection to hear it
// again: bounded in number and in time. A boat that was away for longer believes the
// count.

const (
	// maxForgotten is how many tags are kept, the latest.
	maxForgotten = 128
	// forgetAfter is how long.
	forgetAfter = 24 * time.Hour
)

// forgotten is a tag that the boat was told to forget, or would have been.
type forgotten struct {
	Tag tag
	At  int64 // in seconds
}

// keptTags are those, the oldest first. They are stored as bytes: there may be many.
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
		return errors.New("tags that are kept are cut off")
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

// keep has each new connection of the boat told to forget these tags.
func (r *roster) keep(tags []tag, now time.Time) {
	for _, t := range tags {
		if !r.Forgotten.has(t) {
			r.Forgotten = append(r.Forgotten, forgotten{t, now.Unix()})
		}
	}
}

// tidy is done before a roster is written: when everybody has left, what the boat was
// told is kept, and what is kept has its bounds.
func (r *roster) tidy(now time.Time) {
	if r.empty() {
		r.distrust()
		r.keep(r.Told, now)
		r.Told = nil
	}
	// A boat that cannot be told anything may be owed much.
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

// keptUntil is when nothing has to be kept any more.
func (r *roster) keptUntil() time.Time {
	var last int64
	for _, f := range r.Forgotten {
		last = max(last, f.At)
	}
	return time.Unix(last, 0).Add(forgetAfter)
}
