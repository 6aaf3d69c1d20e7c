package conformance

import "testing"

var section3Status = []story{
	{Name: "Section3_StatusAtOnceAndAtEveryChange", Tell: statusChanges},
	{Name: "Section3_StatusGoesToEveryViewer", Tell: statusAll},
	{Name: "Section3_StatusOfABoatThatBreaksOff", Tell: statusDropped},
}

func statusChanges(t *testing.T, r *relay) {
	b := r.boat(t)
	v := b.viewer()
	v.wantStatus(false) // the first word after welcome
	for range 3 {
		ship := b.dial()
		ship.viewers()
		v.wantStatus(true)
		late := b.viewer()
		late.wantStatus(true)
		ship.wantAttach(2)
		late.close()
		ship.wantDetach(ship.roster[1], 1)
		ship.close()
		v.wantStatus(false)
	}
	v.wantNothing()
}

func statusAll(t *testing.T, r *relay) {
	b, o := r.boat(t), r.boat(t)
	var all []*peer
	for range maxViewers {
		v := b.viewer()
		v.wantStatus(false)
		all = append(all, v)
	}
	others := o.viewer()
	others.wantStatus(false)
	ship := b.dial()
	for _, v := range all {
		v.wantStatus(true)
	}
	ship.close()
	for _, v := range all {
		v.wantStatus(false)
		v.wantNothing()
	}
	others.wantNothing()
}

func statusDropped(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, _ := b.watched()
	ship.drop()
	v.wantStatus(false)
	v.wantNothing()
}
