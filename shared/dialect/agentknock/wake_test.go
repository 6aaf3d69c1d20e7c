package agentknock

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/queue"
)

// The job for a push dies with the process. The push is sent all the same: until it is due,
// no handler asks for another one.
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

// The end of a device's connection is never reported. A post finds it gone and causes a push.
// A message that arrives after that push, and before the device has left, gets one too.
func TestPushForWhatComesBeforeTheDeviceIsOffline(t *testing.T) {
	x := &stageDeal{}
	c := newCast(t, true, x)
	device := c.dial(c.device.path, c.device.token)
	client := c.dial(c.client.path, c.client.token)
	c.settle()
	c.conns[device].closed = true
	c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
	i := slices.IndexFunc(c.jobs, func(j queue.Job) bool { return j.Kind == "gone" })
	if i < 0 {
		t.Fatal("the device was not found gone")
	}
	gone := c.jobs[i]
	c.jobs = slices.Delete(c.jobs, i, i+1)
	c.settle()
	if n := len(c.pushes); n != 1 {
		t.Fatalf("%d pushes for the request", n)
	}
	c.now = c.now.Add(time.Second)
	c.frame(client, string(x.frame(peer.Message, peer.Completion).Encode()))
	c.jobs = append(c.jobs, gone)
	c.settle()
	for c.pass() {
		c.settle()
	}
	if n := len(c.pushes); n != 2 {
		t.Errorf("%d pushes for the request and the completion", n)
	}
}

// A device is gone before it got all messages that wait for it, or its connection never
// opens, and neither is reported. It gets a push soon, without the sweeper.
func TestPushForADeviceThatIsGoneBeforeItHasCaughtUp(t *testing.T) {
	for lasts := range 3 { // the first word, the request, caught_up
		synctest.Test(t, func(t *testing.T) {
			x := &stageDeal{}
			c := newCast(t, true, x)
			client := c.dial(c.client.path, c.client.token)
			c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
			c.settle()
			device := c.upgrade(c.device.path, c.device.token)
			c.conns[device].open, c.conns[device].lasts = lasts > 0, lasts
			for range 60 {
				c.settle()
				c.now = c.now.Add(time.Second)
			}
			if n := len(c.pushes); n != 2 {
				t.Errorf("%d pushes, and the device was sent %s", n, c.conns[device].inbox)
			}
		})
	}
}

// A device that is found gone by the post of a reminder, or of what it has resumed, gets a
// push too.
func TestPushForADeviceThatIsGoneWhenItIsReminded(t *testing.T) {
	for _, resumes := range []bool{false, true} {
		x := &stageDeal{}
		c := newCast(t, true, x)
		device := c.dial(c.device.path, c.device.token)
		client := c.dial(c.client.path, c.client.token)
		c.settle()
		request := string(x.frame(peer.Message, peer.Request).Encode())
		c.frame(client, request)
		c.settle()
		c.conns[device].closed = true
		c.now = c.now.Add(time.Minute)
		if resumes {
			c.frame(device, string(x.frame(peer.Resume, "").Encode()))
		} else {
			c.frame(c.dial(c.client.path, c.client.token), request)
		}
		for c.settle(); c.pass(); c.settle() {
			continue
		}
		if len(c.pushes) == 0 {
			t.Errorf("resumes=%t: the device is not woken", resumes)
		}
	}
}
