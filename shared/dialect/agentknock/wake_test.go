package agentknock

import (
	"testing"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// A push that was to come dies with the process. It comes all the same: until its time
// nobody asks for another one.
func TestPushThatWasToComeSurvives(t *testing.T) {
	x, y, z := &stageDeal{}, &stageDeal{}, &stageDeal{}
	c := newCast(t, false, x, y, z)
	client := c.dial(c.client.path, c.client.token)
	c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
	c.settle()
	c.now = c.now.Add(time.Second)
	c.frame(client, string(y.frame(peer.Message, peer.Request).Encode()))
	c.dead = true
	c.revive()
	c.settle()
	before := len(c.pushes)
	c.now = c.now.Add(time.Second)
	client = c.dial(c.client.path, c.client.token)
	c.frame(client, string(z.frame(peer.Message, peer.Request).Encode()))
	c.settle()
	for c.pass() {
		c.settle()
	}
	if n := len(c.pushes) - before; n == 0 {
		t.Error("nothing is pushed for a request that comes after the start")
	}
	if late := c.now.Sub(stageStart); late > time.Minute {
		t.Errorf("the last push comes after %v", late)
	}
}
