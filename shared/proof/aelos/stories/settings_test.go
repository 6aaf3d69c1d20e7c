package stories

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	peer "blindpost/shared/client/aelos"
	"blindpost/shared/dialect/aelos"
	"blindpost/shared/metrics"
	"blindpost/shared/proof/rig"
	"blindpost/shared/standalone"
)

// Aelos is spoken at the operator's path and with the operator's spelling of the
// role; what it keeps is gone with the process and never reaches the file; without a
// secret it is not spoken at all.
func TestAelosSettings(t *testing.T) {
	controller, err := aelos.ParseController("roles=controller")
	if err != nil {
		t.Fatal(err)
	}
	cfg := standalone.Config{
		Limits: standalone.DefaultLimits(),
		Aelos: standalone.Aelos{
			Secrets:    func(context.Context) ([]string, error) { return []string{aelosSecret}, nil },
			Path:       "/relay",
			Controller: controller,
		},
		Metrics: metrics.New(metrics.Options{}),
	}
	r := rig.InProcess(t, cfg)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: r.TLS()}}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	dial := func(path, role string, claims peer.Claims) *peer.Line {
		t.Helper()
		l, _, err := peer.Dial(ctx, "wss://"+r.Address+path, peer.DialOptions{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		token, err := peer.Mint([]byte(aelosSecret), claims)
		if err != nil {
			t.Fatal(err)
		}
		hello := peer.Encode(peer.Hello{Proto: 2, Role: role, Token: token})
		if err := l.Send(ctx, peer.Message{Text: true, Data: hello}); err != nil {
			t.Fatal(err)
		}
		return l
	}
	want := func(l *peer.Line, what string) peer.Message {
		t.Helper()
		m, err := l.Receive(ctx)
		if err != nil || !bytes.Contains(m.Data, []byte(what)) {
			t.Fatalf("got %s, %v, want %s", m.Data, err, what)
		}
		return m
	}
	in := time.Now().Add(time.Hour)
	boat := dial("/relay", "boat", peer.BoatClaims("org", "boat", in))
	want(boat, "welcome")
	want(boat, `"count":0`)
	viewer := dial(aelos.Path, "viewer", peer.ViewerClaims("org", "me", "boat", in).With("roles", []string{"controller"}))
	want(viewer, "welcome")
	want(viewer, `"online":true`)
	want(boat, `"count":1`)
	command := append([]byte{2}, make([]byte, 30)...)
	if err := viewer.Send(ctx, peer.Message{Data: command}); err != nil {
		t.Fatal(err)
	}
	if m := want(boat, "\x02"); m.Text || len(m.Data) != len(command)+4 {
		t.Errorf("got %x", m.Data)
	}
	boat.Abort()
	viewer.Abort()
	r.Stop(t)

	file, err := os.ReadFile(filepath.Join(r.Dir, "blindpost.db"))
	if err != nil || bytes.Contains(file, []byte(aelos.Partition)) {
		t.Errorf("the file holds something of Aelos, or: %v", err)
	}

	cfg.Aelos = standalone.Aelos{}
	r = rig.InProcess(t, cfg)
	client = &http.Client{Transport: &http.Transport{TLSClientConfig: r.TLS()}}
	for _, path := range []string{aelos.Path, "/relay"} {
		if _, res, err := peer.Dial(ctx, "wss://"+r.Address+path, peer.DialOptions{Client: client}); err == nil || res == nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("%s without a secret: %v", path, err)
		}
	}
	if !strings.HasPrefix(aelos.Partition, "aelos") {
		t.Error("the search above looks for something else")
	}
}
