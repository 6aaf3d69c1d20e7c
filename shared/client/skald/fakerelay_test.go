package skald

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

// fakeRelay is a relay as small as one can be that still keeps the protocol:
// admission, pairing, authorised list, mailbox, live channel, presence. It
// shares no code with what it tests. Hooks make it misbehave.
type fakeRelay struct {
	t      testing.TB
	url    string
	dial   DialOptions
	server *http.Server
	conns  sync.WaitGroup

	mu         sync.Mutex
	hooks      hooks
	dials      []time.Time
	namespaces map[[32]byte]*fakeNamespace
	received   []*skaldpb.RelayFrame
}

// hooks make a fakeRelay misbehave.
type hooks struct {
	// refuse, if set, is asked for an error code before an Auth is looked at.
	refuse func(auth *skaldpb.Auth) (code string)
	// intercept, if set, sees admitted peers' frames first; true means that it
	// has dealt with them.
	intercept func(p *fakePeer, f *skaldpb.RelayFrame) bool
	// drop cuts a pairing connection when it is admitted, before its AuthOk.
	drop bool
}

func (r *fakeRelay) misbehave(h hooks) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks = h
}

func (r *fakeRelay) misbehaviour() hooks {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hooks
}

type fakeNamespace struct {
	agent      string
	authorized map[string]bool
	pending    map[string]*skaldpb.ClientPaired
	tokens     map[string]string // device tokens
	online     map[string]*fakePeer
	mailbox    map[string][]*skaldpb.Message
	token      []byte
	tokenUntil time.Time
}

// fakePeer is one connection.
type fakePeer struct {
	r    *fakeRelay
	ws   *websocket.Conn
	ns   *fakeNamespace
	key  string
	role string

	out  chan *skaldpb.RelayFrame
	done chan struct{}
}

// newPipeRelay runs in memory, so that it can live in a synctest bubble.
func newPipeRelay(t testing.TB) *fakeRelay {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	r := &fakeRelay{t: t, namespaces: map[[32]byte]*fakeNamespace{}, url: "ws://relay.test"}
	r.dial = DialOptions{DialContext: l.dial}
	r.server = &http.Server{Handler: r}
	r.conns.Go(func() { _ = r.server.Serve(l) })
	t.Cleanup(r.close)
	return r
}

func (r *fakeRelay) close() {
	r.mu.Lock()
	for _, ns := range r.namespaces {
		for _, p := range ns.online {
			go p.ws.CloseNow()
		}
	}
	r.mu.Unlock()
	_ = r.server.Close()
	r.conns.Wait()
}

func (r *fakeRelay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.conns.Add(1)
	defer r.conns.Done()
	r.mu.Lock()
	r.dials = append(r.dials, time.Now())
	r.mu.Unlock()
	if req.URL.Path != DefaultPath {
		http.NotFound(w, req)
		return
	}
	ws, err := websocket.Accept(w, req, nil)
	if err != nil {
		return
	}
	ws.SetReadLimit(1 << 20)
	p := &fakePeer{r: r, ws: ws, out: make(chan *skaldpb.RelayFrame, 1000), done: make(chan struct{})}
	var writer sync.WaitGroup
	writer.Go(p.writeLoop)
	code, reason := p.serve()
	close(p.done)
	writer.Wait()
	_ = ws.Close(code, reason)
}

func (p *fakePeer) writeLoop() {
	for {
		select {
		case f := <-p.out:
			p.write(f)
		case <-p.done:
			for {
				select {
				case f := <-p.out:
					p.write(f)
				default:
					return
				}
			}
		}
	}
}

func (p *fakePeer) write(f *skaldpb.RelayFrame) {
	b, err := proto.Marshal(f)
	if err != nil {
		p.r.t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	_ = p.ws.Write(ctx, websocket.MessageBinary, b)
}

func (p *fakePeer) read() (*skaldpb.RelayFrame, error) {
	_, b, err := p.ws.Read(context.Background())
	if err != nil {
		return nil, err
	}
	f := &skaldpb.RelayFrame{}
	if err := proto.Unmarshal(b, f); err != nil {
		return nil, err
	}
	p.r.mu.Lock()
	p.r.received = append(p.r.received, f)
	p.r.mu.Unlock()
	return f, nil
}

func authError(code string) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthError{
		AuthError: &skaldpb.AuthError{Code: code, Message: "refused by test"}}}
}

func errorFrame(code string) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Error{
		Error: &skaldpb.Error{Code: code, Message: "error by test"}}}
}

func (p *fakePeer) serve() (websocket.StatusCode, string) {
	nonce := make([]byte, 32)
	_, _ = rand.Read(nonce)
	p.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Challenge{Challenge: &skaldpb.Challenge{Nonce: nonce}}}
	f, err := p.read()
	if err != nil {
		return websocket.StatusInternalError, ""
	}
	auth := f.GetAuth()
	if refuse := p.r.misbehaviour().refuse; refuse != nil {
		if code := refuse(auth); code != "" {
			p.out <- authError(code)
			return websocket.StatusPolicyViolation, ""
		}
	}
	if code := p.admit(auth, nonce); code != "" {
		p.out <- authError(code)
		return websocket.StatusPolicyViolation, ""
	}
	defer p.leave()
	for {
		f, err := p.read()
		if err != nil {
			return websocket.StatusNormalClosure, ""
		}
		if intercept := p.r.misbehaviour().intercept; intercept == nil || !intercept(p, f) {
			p.handle(f)
		}
	}
}

// admit checks an Auth and, if it is good, announces the peer.
func (p *fakePeer) admit(auth *skaldpb.Auth, nonce []byte) string {
	var key, id []byte
	switch {
	case auth.GetAgent() != nil:
		p.role, key = "agent", auth.GetAgent().GetAgentEd25519Pub()
		sum := sha256.Sum256(append([]byte("skald-namespace-v1\x00"), key...))
		id = sum[:]
	case auth.GetClient() != nil:
		p.role, key, id = "client", auth.GetClient().GetClientEd25519Pub(), auth.GetClient().GetNamespaceId()
	case auth.GetPairing() != nil:
		p.role, key, id = "pairing", auth.GetPairing().GetClientEd25519Pub(), auth.GetPairing().GetNamespaceId()
	}
	if len(key) != 32 || len(id) != 32 {
		return CodeBadRequest
	}
	if !ed25519.Verify(key, append([]byte("skald-relay-auth-v1\x00"), nonce...), auth.GetSignature()) {
		return CodeInvalidSignature
	}
	p.key = string(key)
	r := p.r
	r.mu.Lock()
	defer r.mu.Unlock()
	ns := r.namespaces[[32]byte(id)]
	if ns == nil {
		if p.role != "agent" {
			return CodeNotFound
		}
		ns = &fakeNamespace{agent: p.key, authorized: map[string]bool{}, pending: map[string]*skaldpb.ClientPaired{},
			tokens: map[string]string{}, online: map[string]*fakePeer{}, mailbox: map[string][]*skaldpb.Message{}}
		r.namespaces[[32]byte(id)] = ns
	}
	p.ns = ns
	ok := &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthOk{AuthOk: &skaldpb.AuthOk{NamespaceId: id}}}
	switch p.role {
	case "pairing":
		a := auth.GetPairing()
		if ns.token == nil || !bytes.Equal(ns.token, a.GetPairingToken()) || !time.Now().Before(ns.tokenUntil) {
			return CodePairingClosed
		}
		ns.token = nil
		paired := &skaldpb.ClientPaired{ClientEd25519Pub: key, ClientX25519Pub: a.GetClientX25519Pub(), Platform: a.GetPlatform()}
		ns.pending[p.key] = paired
		if agent := ns.online[ns.agent]; agent != nil {
			agent.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_ClientPaired{ClientPaired: paired}}
		}
		if r.hooks.drop {
			go p.ws.CloseNow()
			return ""
		}
		p.out <- ok
		return ""
	case "client":
		if !ns.authorized[p.key] {
			return CodeUnauthorized
		}
		ns.tokens[p.key] = auth.GetClient().GetDeviceToken()
	}
	if old := ns.online[p.key]; old != nil {
		go old.ws.Close(4001, "replaced")
	}
	p.out <- ok
	ns.online[p.key] = p
	if p.role == "agent" {
		for _, paired := range ns.pending {
			p.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_ClientPaired{ClientPaired: paired}}
		}
	}
	for _, m := range ns.mailbox[p.key] {
		p.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: m}}
	}
	delete(ns.mailbox, p.key)
	ns.announce(p, skaldpb.Status_STATUS_ONLINE)
	return ""
}

func (ns *fakeNamespace) announce(p *fakePeer, s skaldpb.Status) {
	for key, other := range ns.online {
		if key != p.key {
			other.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceEvent{
				PresenceEvent: &skaldpb.PresenceEvent{Pubkey: []byte(p.key), Status: s}}}
		}
	}
}

func (p *fakePeer) leave() {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	if p.ns.online[p.key] == p {
		delete(p.ns.online, p.key)
		p.ns.announce(p, skaldpb.Status_STATUS_OFFLINE)
	}
}

func (p *fakePeer) handle(f *skaldpb.RelayFrame) {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	ns := p.ns
	switch v := f.GetFrame().(type) {
	case *skaldpb.RelayFrame_Authorize:
		listed := map[string]bool{}
		for _, k := range v.Authorize.GetClients() {
			if key := string(k); ns.authorized[key] || ns.pending[key] != nil {
				listed[key] = true
				delete(ns.pending, key)
			}
		}
		for key := range ns.authorized {
			if !listed[key] {
				delete(ns.mailbox, key)
				if q := ns.online[key]; q != nil {
					go q.ws.Close(websocket.StatusPolicyViolation, "revoked")
				}
			}
		}
		ns.authorized = listed
		p.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthorizeOk{
			AuthorizeOk: &skaldpb.AuthorizeOk{Authorized: uint32(len(listed))}}}
	case *skaldpb.RelayFrame_PairingStart:
		ns.token = v.PairingStart.GetPairingToken()
		ns.tokenUntil = time.Now().Add(time.Duration(v.PairingStart.GetTtl()) * time.Second)
		p.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingReady{
			PairingReady: &skaldpb.PairingReady{Ttl: v.PairingStart.GetTtl()}}}
	case *skaldpb.RelayFrame_PairingStop:
		ns.token = nil
		p.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStopOk{PairingStopOk: &skaldpb.PairingStopOk{}}}
	case *skaldpb.RelayFrame_PresenceRequest:
		list := &skaldpb.PresenceList{}
		for key := range ns.online {
			list.Online = append(list.Online, []byte(key))
		}
		p.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceList{PresenceList: list}}
	case *skaldpb.RelayFrame_Message:
		to := string(v.Message.GetPeer())
		m := proto.CloneOf(v.Message)
		m.Peer = []byte(p.key)
		switch {
		case to != ns.agent && !ns.authorized[to]:
			p.out <- errorFrame(CodeNotFound)
		case ns.online[to] != nil:
			ns.online[to].out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: m}}
		case m.GetLive():
			p.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PeerOffline{
				PeerOffline: &skaldpb.PeerOffline{Peer: []byte(to)}}}
		default:
			ns.mailbox[to] = append(ns.mailbox[to], m)
		}
	}
}

// peer returns the connection of a member, or nil.
func (r *fakeRelay) peer(key PublicKey) *fakePeer {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ns := range r.namespaces {
		if p := ns.online[string(key[:])]; p != nil {
			return p
		}
	}
	return nil
}

// frames returns what was received so far.
func (r *fakeRelay) frames() []*skaldpb.RelayFrame {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.received)
}

// messages returns the Message frames received so far.
func (r *fakeRelay) messages() []*skaldpb.Message {
	var all []*skaldpb.Message
	for _, f := range r.frames() {
		if m := f.GetMessage(); m != nil {
			all = append(all, m)
		}
	}
	return all
}

// authorizes returns the sizes of the lists declared so far.
func (r *fakeRelay) authorizes() []int {
	var all []int
	for _, f := range r.frames() {
		if a := f.GetAuthorize(); a != nil {
			all = append(all, len(a.GetClients()))
		}
	}
	return all
}

func (r *fakeRelay) dialTimes() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.dials)
}

// pipeListener hands out the far ends of net.Pipes.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (r *fakeRelay) namespace(agent *Identity) *fakeNamespace {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.namespaces[agent.Namespace()]
}
