package stories

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	knockpeer "blindpost/shared/client/agentknock"
)

// A relay whose database is gone says so in the ways that the specification has for
// it, and acknowledges nothing.
func TestAgentknockFaultOfTheRelay(t *testing.T) {
	inDoorbellBubble(t, func(t *testing.T, k *doorbell) {
		k.Loud = true
		c, dv := k.call(), k.dial()
		if err := k.Node.Database().Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		x := k.ask()
		c.says(x.message(knockpeer.Request))
		c.endsWithFault()
		dv.says(x.message(knockpeer.Response))
		dv.endsWithFault()
		var no *knockpeer.Refusal
		for who, err := range map[string]error{
			"client": refused(k.client.Dial(t.Context(), knockpeer.Options{})),
			"device": refused(k.device.Dial(t.Context(), knockpeer.Options{})),
			"owner":  k.device.SetPairing(t.Context(), true),
		} {
			if !errors.As(err, &no) || no.Status != http.StatusInternalServerError || no.Code == "" || no.Text == "" {
				t.Errorf("%s: %v", who, err)
			}
		}
		k.Crash()
		k.forgive()
		k.World.Open()
		c = k.call() // the same relay with its database back
		c.getsState(x, knockpeer.Snapshot{})
		c.says(x.message(knockpeer.Request))
		c.gets(x.ack(knockpeer.Request))
	})
}

// forgive makes the errors that were logged part of the story. They may not tell
// secrets either.
func (k *doorbell) forgive() {
	k.T.Helper()
	log := k.Log.Take()
	k.Secrets.Add("a payload", []byte(`"sealed"`))
	k.Secrets.WantSilentLog(k.T, log)
	if len(log) == 0 {
		k.T.Error("the relay has not said a word about it")
	}
}

func refused(c *knockpeer.Conn, err error) error {
	if err == nil {
		c.Drop()
	}
	return err
}

// endsWithFault wants the connection to end because of the relay. An error that says
// so, and when to try again, may come before.
func (c *caller) endsWithFault() {
	c.k.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		f, err := c.conn.Next(ctx)
		if err != nil {
			if code := knockpeer.CodeOf(err); code != 1011 {
				c.k.T.Fatalf("it ends with %d: %v", code, err)
			}
			return
		}
		if f.Type != knockpeer.Error || f.Code != "INTERNAL_ERROR" || !f.Retryable {
			c.k.T.Fatalf("got %s", f)
		}
	}
}
