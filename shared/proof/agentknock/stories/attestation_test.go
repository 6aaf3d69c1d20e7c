package stories

import (
	"errors"
	"net/http"
	"testing"
	"time"

	knockpeer "blindpost/shared/client/agentknock"
	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/proof/attesttest"
	"blindpost/shared/standalone"
)

// A relay that demands attestations knows no device without one: it can neither
// connect nor be found. With one all is as ever, also after the key that attested it has
// expired.
func TestKnockAttestation(t *testing.T) {
	var maker *attesttest.Maker
	inBubble(t, func(t *testing.T, w *world) {
		k := &knock{w: w, relay: w.knockRelay(), addr: "0123456789abcdef0123456789abcdef"}
		k.device = knockpeer.NewDevice(k.relay, time.Now())
		w.Secrets.AddToken("a token", k.device.Token)
		w.wantRefused(k.device.Claim(w.within()), http.StatusForbidden, "ATTESTATION_REQUIRED")
		w.wantRefused(k.device.SetAddress(w.within(), k.addr), http.StatusNotFound, "NOT_FOUND")
		stranger := knockpeer.NewDevice(k.relay, time.Now())
		w.Secrets.AddToken("a token", stranger.Token)
		w.wantRefused(k.claim(maker.Attest(t, stranger.ID, stranger.Token)), http.StatusForbidden, "ATTESTATION_INVALID")
		w.wantRefused(k.device.SetAddress(w.within(), k.addr), http.StatusNotFound, "NOT_FOUND")

		chain := maker.Attest(t, k.device.ID, k.device.Token)
		w.must(k.claim(chain))
		w.must(k.claim(chain))
		w.must(k.device.SetAddress(w.within(), k.addr))
		dv, _ := k.open()
		k.client(dv)

		w.Shutdown(0)
		time.Sleep(3 * 365 * 24 * time.Hour)
		w.Open()
		w.must(k.claim(chain))
		k.open()
	}, func(c *standalone.Config) {
		maker = attesttest.NewMaker(t, time.Now())
		roots, err := attest.ParseRoots(maker.PEM())
		if err != nil {
			t.Fatal(err)
		}
		c.Attestation = attest.Policy{Demand: attest.Require, Roots: roots}
	})
}

func (k *knock) claim(chain []string) error {
	_, err := k.relay.Post(k.w.within(), k.device.Path()+"/claim", map[string]any{
		"device_token": k.device.Token, "attestation": map[string]any{"type": "android", "certificate_chain": chain},
	})
	return err
}

func (w *world) wantRefused(err error, status int, code string) {
	w.T.Helper()
	var no *knockpeer.Refusal
	if !errors.As(err, &no) || no.Status != status || no.Code != code {
		w.T.Errorf("got %v, want %d %s", err, status, code)
	}
}
