package skald

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func someState(counter uint64) State {
	return State{
		Role: RoleAgent,
		Seed: Seed{1, 2, 3},
		Peers: []PeerState{{
			Peer: Peer{
				Key:      PublicKey{4},
				Exchange: ExchangeKey{5},
				Platform: PlatformIOS,
				Status:   StatusAuthorized,
				PairedAt: time.UnixMilli(1750000000000),
			},
			SendReserved: counter,
			ReceiveSeen:  7,
		}},
		Window: &Window{Expires: time.UnixMilli(1750000300000), Missed: true},
	}
}

func openStore(t *testing.T, path string) *FileStore {
	t.Helper()
	f, err := OpenFileStore(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestFileStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "state.json")
	f := openStore(t, path)
	if _, err := f.Load(); !errors.Is(err, ErrNoState) {
		t.Fatalf("before the first save: %v", err)
	}
	want := someState(64)
	if err := f.Save(want); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(want); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("saved when closed: %v", err)
	}
	if got, err := openStore(t, path).Load(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("loaded %+v: %v", got, err)
	}
}

// A crash at any step leaves the old state or the new one.
func TestFileStoreSurvivesACrashAtEachStep(t *testing.T) {
	crash := errors.New("crash")
	for _, c := range []struct {
		step string
		want uint64
	}{
		{"create", 64},
		{"write", 64},
		{"sync", 64},
		{"rename", 64},
		{"sync directory", 128},
	} {
		path := filepath.Join(t.TempDir(), "state.json")
		f := openStore(t, path)
		if err := f.Save(someState(64)); err != nil {
			t.Fatal(err)
		}
		reached := false
		f.before = func(step string) error {
			if step == c.step {
				reached = true
				return crash
			}
			return nil
		}
		if err := f.Save(someState(128)); !errors.Is(err, crash) || !reached {
			t.Errorf("%s: reached %v: %v", c.step, reached, err)
		}
		f.Close()

		f = openStore(t, path)
		if got, err := f.Load(); err != nil || got.Peers[0].SendReserved != c.want {
			t.Errorf("%s: loaded %+v: %v", c.step, got, err)
		}
		if err := f.Save(someState(192)); err != nil {
			t.Errorf("%s: next save: %v", c.step, err)
		}
		if got, err := f.Load(); err != nil || got.Peers[0].SendReserved != 192 {
			t.Errorf("%s: after the next save loaded %+v: %v", c.step, got, err)
		}
	}
}

// What a crash left of a new file is neither read nor in the way, whatever its
// mode, and not followed if it is a link.
func TestFileStoreIgnoresLeftovers(t *testing.T) {
	for name, leave := range map[string]func(temp, elsewhere string) error{
		"torn": func(temp, _ string) error { return os.WriteFile(temp, []byte(`{"v":1,"ro`), 0o644) },
		"link": func(temp, elsewhere string) error { return os.Symlink(elsewhere, temp) },
	} {
		dir := t.TempDir()
		path, elsewhere := filepath.Join(dir, "state.json"), filepath.Join(dir, "elsewhere")
		if err := os.WriteFile(elsewhere, []byte("precious"), 0o644); err != nil {
			t.Fatal(err)
		}
		f := openStore(t, path)
		if err := f.Save(someState(64)); err != nil {
			t.Fatal(err)
		}
		if err := leave(path+".new", elsewhere); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Load(); err != nil || got.Peers[0].SendReserved != 64 {
			t.Errorf("%s: loaded %+v: %v", name, got, err)
		}
		if err := f.Save(someState(128)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v: %v", name, info.Mode(), err)
		}
		if b, err := os.ReadFile(elsewhere); err != nil || string(b) != "precious" {
			t.Errorf("%s: other file holds %q: %v", name, b, err)
		}
	}
}

// A state that cannot be read is an error, and stays as it is: a new identity
// in its place would throw the old one away.
func TestFileStoreRefusesUnusableState(t *testing.T) {
	good, err := encodeState(someState(64))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(good)
	for _, c := range []struct {
		name, content string
		mode          fs.FileMode
	}{
		{"empty", "", 0o600},
		{"torn", doc[:len(doc)/2], 0o600},
		{"readable by others", doc, 0o644},
		{"version 2", strings.Replace(doc, `"v": 1`, `"v": 2`, 1), 0o600},
		{"member of the future", strings.Replace(doc, `"v": 1`, `"v": 1, "more": 1`, 1), 0o600},
		{"no seed", strings.Replace(doc, `"seed"`, `"peers"`, 1), 0o600},
		{"short seed", strings.Replace(doc, `"010203`, `"0102`, 1), 0o600},
		{"no role", strings.Replace(doc, `"agent"`, `""`, 1), 0o600},
		{"unknown status", strings.Replace(doc, `"authorized"`, `"maybe"`, 1), 0o600},
		{"two documents", doc + doc, 0o600},
		{"huge", doc + strings.Repeat(" ", maxStateFile), 0o600},
	} {
		path := filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(path, []byte(c.content), c.mode); err != nil {
			t.Fatal(err)
		}
		f := openStore(t, path)
		if _, err := f.Load(); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := NewAgent(AgentConfig{URL: "wss://relay.test", Config: Config{Store: f}}); !errors.Is(err, ErrState) {
			t.Errorf("%s: made an agent: %v", c.name, err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != c.content {
			t.Errorf("%s: was changed: %v", c.name, err)
		}
	}
}

func TestFileStoreIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	first := openStore(t, path)
	if _, err := OpenFileStore(path); !errors.Is(err, ErrLocked) {
		t.Fatalf("opened twice: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openStore(t, path)
}

func TestStateCodec(t *testing.T) {
	key := rapid.Custom(func(t *rapid.T) [32]byte {
		return [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
	})
	at := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMilli(rapid.Int64Range(0, 1<<45).Draw(t, "time"))
	})
	peer := rapid.Custom(func(t *rapid.T) PeerState {
		return PeerState{
			Peer: Peer{
				Key:      key.Draw(t, "key"),
				Exchange: key.Draw(t, "exchange"),
				Platform: rapid.SampledFrom([]Platform{0, 1, 2}).Draw(t, "platform"),
				Status:   rapid.SampledFrom([]Status{StatusPending, StatusAuthorized, StatusDenied, StatusRevoked}).Draw(t, "status"),
				PairedAt: at.Draw(t, "paired"),
			},
			SendReserved: rapid.Uint64().Draw(t, "reserved"),
			ReceiveSeen:  rapid.Uint64().Draw(t, "seen"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := State{
			Role:  rapid.SampledFrom([]Role{RoleAgent, RoleClient}).Draw(t, "role"),
			Seed:  key.Draw(t, "seed"),
			Peers: rapid.SliceOfNDistinct(peer, 1, 5, func(p PeerState) PublicKey { return p.Key }).Draw(t, "peers"),
		}
		if rapid.Bool().Draw(t, "window") {
			want.Window = &Window{Expires: at.Draw(t, "expires"), Missed: rapid.Bool().Draw(t, "missed")}
			if rapid.Bool().Draw(t, "used") {
				want.Window.UsedBy = PublicKey{1}
			}
		}
		if rapid.Bool().Draw(t, "home") {
			want.Home = &Home{RelayURL: "wss://relay.test", Agent: want.Peers[0].Key, Authorized: rapid.Bool().Draw(t, "authorized")}
		}
		b, err := encodeState(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeState(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v: %v", got, want, err)
		}
	})
}

// A copy that Load or Save hands over shares nothing with the store.
func TestMemoryStoreKeepsCopies(t *testing.T) {
	s := someState(64)
	m := NewMemoryStore(s)
	s.Peers[0].SendReserved, s.Window.Missed = 1, false
	got, err := m.Load()
	if err != nil || !reflect.DeepEqual(got, someState(64)) {
		t.Errorf("loaded %+v: %v", got, err)
	}
	got.Peers[0].SendReserved = 2
	if again, err := m.Load(); err != nil || again.Peers[0].SendReserved != 64 {
		t.Errorf("loaded %+v: %v", again, err)
	}
	if _, err := new(MemoryStore).Load(); !errors.Is(err, ErrNoState) {
		t.Errorf("empty: %v", err)
	}
}

// failingStore fails to save when told to.
type failingStore struct {
	MemoryStore
	err error
}

func (f *failingStore) Save(s State) error {
	if f.err != nil {
		return f.err
	}
	return f.MemoryStore.Save(s)
}

var errDisk = fmt.Errorf("disk is full")
