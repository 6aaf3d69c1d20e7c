package conformance

import (
	"slices"

	wire "blindpost/shared/client/aelos"
)

// heard is what a peer was told. A relay whose target Repeats may tell it again: the story
// then goes on with what is news.
type heard struct {
	welcomed bool
	online   *bool
	listed   bool
	count    int
	tags     []string
}

// news returns a frame without what its peer knows; false if there is nothing else.
func (h *heard) news(c wire.Control) (wire.Control, bool) {
	switch c := c.(type) {
	case wire.Welcome:
		first := !h.welcomed
		h.welcomed = true
		return c, first
	case wire.BoatStatus:
		same := h.online != nil && *h.online == c.Online
		h.online = &c.Online
		return c, !same
	case wire.Viewers:
		return h.viewers(c)
	}
	return c, true
}

func (h *heard) viewers(c wire.Viewers) (wire.Control, bool) {
	known := func(tag string) bool { return slices.Contains(h.tags, tag) }
	c.Attach = slices.DeleteFunc(c.Attach, known)
	c.Detach = slices.DeleteFunc(c.Detach, func(tag string) bool { return !known(tag) })
	h.tags = slices.DeleteFunc(append(h.tags, c.Attach...), func(tag string) bool { return slices.Contains(c.Detach, tag) })
	same := h.listed && h.count == c.Count && len(c.Attach)+len(c.Detach) == 0
	h.listed, h.count = true, c.Count
	return c, !same
}
