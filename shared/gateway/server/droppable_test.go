package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// A peer that does not keep up loses what may be dropped, early and without harm,
// and gets all that may not. When it reads again, so does it get the former.
func TestDroppableMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, obs := gatewaytest.NewRecorder(), &counting{}
		s, dial := bubble(t, rec, func(o *Options) { o.Observer, o.WriteTimeout = obs, time.Hour })
		p := dial()
		id := rec.WaitConnects(t, 1)[0]
		post := func(data string, droppable bool) gateway.Outcome {
			t.Helper()
			out, err := s.Post(context.Background(), id, gateway.Message{Data: []byte(data), Droppable: droppable})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		taken := 0
		for i := range 1000 {
			if i == 1 {
				synctest.Wait() // the first is being written; a long queue would begin with a ping
			}
			if post(repeat(1<<10), true) == gateway.Pending {
				taken++
			}
		}
		// 256 KiB with the headers of the frames, four bytes each.
		if want := maxDroppable / (1<<10 + 4); taken != want {
			t.Errorf("%d were taken, want %d", taken, want)
		}
		if out := post("must", false); out != gateway.Pending {
			t.Errorf("outcome %v", out)
		}
		if post("may", true) != gateway.Dropped {
			t.Error("one more was taken")
		}
		for range taken {
			p.want(ws.OpBinary, repeat(1<<10))
		}
		p.want(ws.OpBinary, "must")
		p.wantPing() // as behind every long queue
		synctest.Wait()
		if post("again", true) != gateway.Pending {
			t.Error("nothing is taken for a peer that keeps up again")
		}
		p.want(ws.OpBinary, "again")
		if obs.slow != 0 {
			t.Error("a slow reader was closed")
		}
	})
}

// With a small buffer half of it is for what may be dropped, and a single message
// always fits.
func TestDroppableMessagesInASmallBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		s, dial := bubble(t, rec, func(o *Options) { o.MaxBuffered, o.WriteTimeout = 8<<10, time.Hour })
		p := dial()
		id := rec.WaitConnects(t, 1)[0]
		synctest.Wait() // the answer to the upgrade is on its way
		for i, want := range []gateway.Outcome{gateway.Pending, gateway.Dropped, gateway.Dropped} {
			out, err := s.Post(context.Background(), id, gateway.Message{Data: []byte(repeat(5 << 10)), Droppable: true})
			if err != nil || out != want {
				t.Errorf("message %d: %v, %v", i, out, err)
			}
			synctest.Wait()
		}
		p.want(ws.OpBinary, repeat(5<<10))
	})
}
